package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/setup"
)

// roff escapes text for a page of the manual.
var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.")

// manPage begins a page of the manual.
func manPage(title, help, synopsis string) *strings.Builder {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"millrace\" \"User Commands\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n%s\n",
		strings.ToUpper(title), title, roff.Replace(strings.TrimSuffix(help, ".")), roff.Replace(synopsis))
	return &b
}

func manItem(term, text string) string {
	return ".TP\n.B " + roff.Replace(term) + "\n" + roff.Replace(text) + "\n"
}

// manFlags writes flags in sections by group, without the flags that all commands have.
func manFlags(b *strings.Builder, flags []*kong.Flag, commonFlags map[string]bool) {
	var groups []string
	in := map[string][]*kong.Flag{}
	for _, f := range flags {
		group := "Options"
		if f.Group != nil {
			group = f.Group.Title
		}
		if commonFlags[f.Name] {
			continue
		}
		if in[group] == nil {
			groups = append(groups, group)
		}
		in[group] = append(in[group], f)
	}
	for _, group := range groups {
		fmt.Fprintf(b, ".SH %s\n", strings.ToUpper(group))
		for _, f := range in[group] {
			b.WriteString(manItem(f.String(), f.Help))
		}
	}
}

// The manual has a page for the program, and one for each command.
func TestReferenceManual(t *testing.T) {
	t.Parallel()
	m := model(t)
	leaves := m.Leaves(false)
	all := manPage("millrace", "publish, read and check websites for machines", "millrace COMMAND [ARGUMENTS] [OPTIONS]")
	all.WriteString(".SH COMMANDS\n")
	pages, commonFlags, general := map[string]string{}, map[string]bool{"help": true}, ".SH OPTIONS OF EVERY COMMAND\n"
	for _, f := range leaves[0].Flags {
		if f.Group != nil && f.Group.Key == "General" {
			commonFlags[f.Name] = true
			general += manItem(f.String(), f.Help)
		}
	}
	for _, n := range leaves {
		name := strings.ReplaceAll(n.FullPath(), " ", "-")
		all.WriteString(manItem(strings.TrimPrefix(n.FullPath(), "millrace "), n.Help+" See "+name+"(1)."))
		b := manPage(name, n.Help, "millrace "+n.Summary())
		if len(n.Positional) > 0 {
			b.WriteString(".SH ARGUMENTS\n")
		}
		for _, a := range n.Positional {
			b.WriteString(manItem(a.Summary(), a.Help))
		}
		manFlags(b, n.Flags, commonFlags)
		b.WriteString(".SH SEE ALSO\n.BR millrace (1)\nfor the options of every command, the configuration and exit codes.\n")
		pages[name] = b.String()
	}
	all.WriteString(general + `.SH CONFIGURATION
Every option is also a key of millrace.yaml and an environment variable:
.B \-\-log\-level
is the key
.B log\-level
and the variable
.BR MILLRACE_LOG_LEVEL .
The command line overrides the environment, and the environment overrides the file.
.SH EXIT STATUS
0 for success, 1 for findings or a failure, 2 for a wrong command line or configuration.
.SH FILES
.TP
.I /etc/millrace/millrace.yaml
configuration of the system's service
.TP
.I /var/lib/millrace
stores of the system's service
.SH SEE ALSO
https://github.com/millrace/millrace
`)
	pages["millrace"] = all.String()
	files, err := filepath.Glob("../../packaging/man/*.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if base := strings.TrimSuffix(filepath.Base(name), ".1"); pages[base] == "" {
			t.Errorf("packaging/man/%s.1 belongs to no command; remove it", base)
		}
	}
	for name, text := range pages {
		checkReference(t, "../../packaging/man/"+name+".1", text)
	}
}

// The packages install the same systemd unit that `millrace snippet` prints.
func TestReferenceUnit(t *testing.T) {
	t.Parallel()
	unit, err := setup.Snippet("systemd", &setup.SnippetOptions{Listen: "127.0.0.1:8080", Exec: "/usr/bin/millrace"})
	if err != nil {
		t.Fatal(err)
	}
	checkReference(t, "../../packaging/millrace.service", unit)
}
