package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	diff "github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/config"
)

var update = flag.Bool("update", false, "rewrite the pages of docs/reference")

// checkReference compares a page of docs/reference with the text generated from the code.
func checkReference(t *testing.T, name, want string) {
	t.Helper()
	file := filepath.Join("..", "..", "docs", "reference", name)
	want = strings.TrimSpace(want) + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(strings.Split(string(got), "\n"), strings.Split(want, "\n")); d != "" {
		t.Errorf("docs/reference/%s is stale; see what changed (-page +code), then: go test ./cmd/millrace -run Reference -update\n%s", name, d)
	}
}

// model returns the command line as parsed by kong.
func model(t *testing.T) *kong.Application {
	t.Helper()
	k, err := kong.New(new(commands), kong.Name("millrace"), helpVars(), kong.NamedMapper("names", kong.MapperFunc(decodeNames)))
	if err != nil {
		t.Fatal(err)
	}
	return k.Model
}

func TestReferenceCommands(t *testing.T) {
	t.Parallel()
	m := model(t)
	leaves := m.Leaves(false)
	var b strings.Builder
	b.WriteString(`# Commands

Except ` + "`--config`" + ` and most flags of ` + "`up`" + `, every flag is also a key of ` + "`millrace.yaml`" + ` and an environment variable:
` + "`--log-level`" + ` is the key ` + "`log-level`" + ` and the variable ` + "`MILLRACE_LOG_LEVEL`" + `. The command line overrides the
environment, and the environment overrides the file.
[configuration.md](configuration.md) lists the keys. ` + "`millrace help COMMAND`" + ` omits flags marked "rarely used".

The exit code is 0 for success, 1 for findings or a failure, 2 for a wrong command line or configuration, 3 for a check or probe that a limit ended.

| command | what it does |
|---|---|
`)
	for _, n := range leaves {
		page := ""
		if publishes(n) {
			page = "commands-publish.md"
		}
		fmt.Fprintf(&b, "| [%s](%s#%s) | %s |\n", n.Path(), page, strings.ReplaceAll(n.FullPath(), " ", "-"), n.Help)
	}
	commonFlags := map[string]bool{"help": true}
	b.WriteString("\n## Flags of every command\n\n")
	for _, f := range leaves[0].Flags {
		if f.Group != nil && f.Group.Key == "General" {
			commonFlags[f.Name] = true
			writeFlag(&b, f)
		}
	}
	// One page of all commands would be too long for agents.
	pages := map[string]*strings.Builder{"commands.md": &b, "commands-publish.md": {}}
	pages["commands-publish.md"].WriteString("# Commands that publish\n\n[Commands](commands.md) has the other commands, and the flags of every command.\n")
	for _, n := range leaves {
		b := pages["commands.md"]
		if publishes(n) {
			b = pages["commands-publish.md"]
		}
		fmt.Fprintf(b, "\n## %s\n\n%s\n\n    millrace %s\n", n.FullPath(), n.Help, n.Summary())
		if len(n.Positional) > 0 {
			b.WriteString("\n")
		}
		for _, a := range n.Positional {
			fmt.Fprintf(b, "- `%s`: %s\n", a.Summary(), a.Help)
		}
		var groups []string
		in := map[string][]*kong.Flag{}
		for _, f := range n.Flags {
			if commonFlags[f.Name] {
				continue
			}
			group := "Flags"
			if f.Group != nil {
				group = f.Group.Title
			}
			if in[group] == nil {
				groups = append(groups, group)
			}
			in[group] = append(in[group], f)
		}
		for _, group := range groups {
			fmt.Fprintf(b, "\n%s:\n\n", group)
			for _, f := range in[group] {
				writeFlag(b, f)
			}
		}
	}
	for name, text := range pages {
		checkReference(t, name, text.String())
	}
}

// publishes reports whether a command publishes a site.
func publishes(n *kong.Node) bool { return n.Name == "serve" || n.Name == "build" }

func writeFlag(b *strings.Builder, f *kong.Flag) {
	rare := ""
	if f.Hidden {
		rare = " Rarely used."
	}
	fmt.Fprintf(b, "- `%s`: %s%s\n", f, f.Help, rare)
}

// kindOf describes the type of a flag's value for users.
func kindOf(f *kong.Flag) string {
	typ, named := f.Target.Type(), strings.ToLower(f.PlaceHolder)
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if named == "url" {
		named = "URL"
	}
	switch {
	case f.IsSlice():
		return "list of " + strings.TrimSuffix(strings.ReplaceAll(named, "url", "URL"), ",...")
	case f.Enum != "":
		return "one of " + strings.Trim(strings.ReplaceAll(f.Enum, ",", ", "), ", ")
	case typ.Kind() == reflect.Bool:
		return "true or false"
	case named == "n", typ.Kind() == reflect.Float64:
		return "number"
	}
	return cmp.Or(named, "text")
}

// withDefault matches the default in the help text of a flag.
var withDefault = regexp.MustCompile(` *\(default: ([^()]*(?:\([^()]*\))?[^()]*)\)`)

// keyRow returns the table row of a key.
func keyRow(f *kong.Flag, of string) string {
	value, help := f.Default, f.Help
	if value != "" {
		value = "`" + value + "`"
	} else if m := withDefault.FindStringSubmatch(help); m != nil {
		value = m[1]
	} else if f.IsBool() {
		value = "`false`"
	}
	help, _, _ = strings.Cut(withDefault.ReplaceAllString(help, ""), ". ")
	help, _, _ = strings.Cut(strings.TrimSuffix(help, "."), "; ")
	return fmt.Sprintf("| `%s` | %s | %s | %s. | %s |\n", f.Name, kindOf(f), value, help, of)
}

// example is a configuration file that the page shows.
const example = `# A site behind nginx, in every protocol.
base-url: https://example.com
listen: 127.0.0.1:8080
proxies: [127.0.0.1]
exclude:
  - /internal
policy:
  contact: ai@example.com
  purposes:
    search: true
    ai-train: false
  requirements:
    attribution: true
`

func TestReferenceConfiguration(t *testing.T) {
	t.Parallel()
	m := model(t)
	flags, users := map[string]*kong.Flag{}, map[string][]string{}
	for _, n := range m.Leaves(false) {
		for name, f := range flagsOf(n) {
			if flags[name] == nil {
				flags[name] = f
			}
			users[name] = append(users[name], n.FullPath()[len("millrace "):])
		}
	}
	var b strings.Builder
	b.WriteString("# Configuration\n\n" + `millrace reads ` + "`millrace.yaml`" + ` in the current folder, or the file that ` + "`--config`" + ` names. Every key except
` + "`source`" + ` and ` + "`policy`" + ` is the name of a flag. [commands.md](commands.md) explains the flags. A key can also be set by an environment
variable: ` + "`MILLRACE_`" + ` and the key in upper case with underscores. An unknown key is an error. ` + "`millrace config`" + ` shows the values that
a command uses, and the origin of each.

` + "```yaml\n" + example + "```\n" + `
Secrets can be set in the environment: ` + "`MILLRACE_KEY`" + ` is the key of the sites that pull and watch read, and
` + "`MILLRACE_WEBHOOK_SECRET`" + ` is the secret of ` + "`watch --webhook`" + `.

A duration is written as ` + "`90s`" + `, ` + "`15m`" + ` or ` + "`24h`" + `.

## Keys

| key | type | default | meaning | commands |
|---|---|---|---|---|
`)
	total := len(m.Leaves(false))
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		f, of := flags[name], strings.Join(users[name], ", ")
		if len(users[name]) >= total-1 {
			of = "all"
		}
		b.WriteString(keyRow(f, of))
	}
	b.WriteString("\n## Policy\n\nThe keys below `policy` declare the permitted uses of the content. An omitted key declares nothing.\n\n| key | type | meaning |\n|---|---|---|\n")
	file, block := filepath.Join(t.TempDir(), config.FileName), ""
	for _, k := range policyKeys {
		parent, key, nested := strings.Cut(k.name, ".")
		switch {
		case !nested:
			block += "  " + parent + ": " + k.value + "\n"
		case strings.Contains(block, "  "+parent+":\n"):
			block += "    " + key + ": " + k.value + "\n"
		default:
			block += "  " + parent + ":\n    " + key + ": " + k.value + "\n"
		}
		fmt.Fprintf(&b, "| `policy.%s` | %s | %s |\n", k.name, k.kind, k.meaning)
	}
	checkReference(t, "configuration.md", b.String())

	for _, text := range []string{example, "base-url: https://example.com\npolicy:\n" + block} {
		write(t, file, text)
		conf := config.New(environment(nil))
		known := map[string]config.Flag{}
		for name, f := range flags {
			known[name] = config.Flag{List: f.IsSlice(), Placeholder: f.PlaceHolder}
		}
		if err := conf.Load(file, known); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := command(t, nil, "config", "serve", "--config", file); code != exitGood {
			t.Errorf("%d\n%s%s", code, out, errs)
		}
		if text == example {
			continue
		}
		if len(conf.PolicyValues) != len(policyKeys) {
			t.Errorf("the file sets %d keys of the policy, the page lists %d", len(conf.PolicyValues), len(policyKeys))
		}
		isListed(t, "Policy", reflect.ValueOf(*conf.Policy))
	}
}

// isListed fails the test for each member of the policy that no key of the page sets.
func isListed(t *testing.T, at string, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		f, name := v.Field(i), at+"."+v.Type().Field(i).Name
		switch {
		case f.IsZero():
			t.Errorf("policyKeys has no key that sets %s", name)
		case f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]():
			isListed(t, name, f)
		}
	}
}

// policyKeys lists the keys below policy, each with a valid value.
var policyKeys = []struct{ name, kind, meaning, value string }{
	{"access", "text", "Who may access the content, in one line.", "Everyone"},
	{"consumers", "list of product tokens", "The agents that are approved by name.", "[ExampleBot]"},
	{"contact", "URL or e-mail address", "Contact for licenses.", "ai@example.com"},
	{"effective", "date or time", "When the policy takes effect.", "2026-01-31"},
	{"payment", "URL", "URL of a page about paid access.", "https://example.com/prices"},
	{"purposes.ai-input", "true or false", "Whether the content may be used to answer questions of users.", "true"},
	{"purposes.ai-train", "true or false", "Whether the content may be used to train models.", "false"},
	{"purposes.search", "true or false", "Whether the content may be used to build a search index.", "true"},
	{"rate.note", "text", "Note on the rates, in one line.", "Lower at night"},
	{"rate.per-day", "number", "Maximum number of requests per day from one agent.", "10000"},
	{"rate.per-second", "number", "Maximum number of requests per second from one agent, such as 0.5.", "0.5"},
	{"requirements.attribution", "true or false", "Users of the content must credit the publisher.", "true"},
	{"requirements.link-back", "true or false", "Copies must link to the page.", "true"},
	{"requirements.notice", "true or false", "Commercial users must notify the publisher.", "true"},
	{"retention", "duration, also in days", "Maximum time for which copies may be kept.", "30d"},
	{"revision", "number", "The number of the version of the policy, from 1.", "1"},
	{"terms", "URL", "The terms of use.", "https://example.com/terms"},
	{"updated", "date or time", "When the policy was last changed; if absent, when this block was changed.", "2026-01-31"},
}
