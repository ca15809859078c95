package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/testkit"
)

const bashCompletion = `# bash completion of millrace, generated from its flags
_millrace() {
	local i word words='' command='' cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}
	[[ $cur == = ]] && cur=
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		[[ $command/ =~ ^({{range $i, $g := .}}{{if $i}}|{{end}}{{$g.Path}}{{end}})/$ && $word != -* ]] && command=${command:+$command }$word
	done
	case "$command $prev" in
{{- range .}}{{range .Commands}}{{$path := .Path}}{{range .Flags}}{{if .Values}}
	'{{$path}} --{{.Name}}') words='{{join .Values}}' ;;
{{- end}}{{end}}{{end}}{{end}}
	*)
		case "$command" in
{{- range .}}
		'{{.Path}}') words='{{range .Commands}}{{.Name}} {{end}}' ;;
{{- range .Commands}}{{if not .Group}}
		'{{.Path}}') words='{{join .Args}}{{range .Flags}} --{{.Name}}{{end}}' ;;
{{- end}}{{end}}{{end}}
		esac
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o default -F _millrace millrace
`

const zshCompletion = `#compdef millrace
# zsh completion of millrace, generated from its flags
_millrace() {
	local command=''
	local -a commands
	while true; do
		case "$command" in
{{- range .}}
		'{{.Path}}') commands=({{range .Commands}}
			'{{.Name}}:{{quote .Help}}'{{end}}) ;;
{{- end}}
		*) break ;;
		esac
		if ((CURRENT == 2)); then
			_describe command commands
			return
		fi
		shift words
		((CURRENT--))
		command="${command:+$command }$words[1]"
	done
	case "$command" in
{{- range .}}{{range .Commands}}{{if not .Group}}
	'{{.Path}}') _arguments{{range .Flags}} \
		'--{{.Name}}{{if not .Bool}}={{end}}[{{quote .Help}}]{{if .Values}}:value:({{join .Values}}){{else if not .Bool}}:value:_files{{end}}'{{end}} \
		{{if .Args}}'1:argument:({{join .Args}})'{{else}}'*:argument:_files'{{end}} ;;
{{- end}}{{end}}{{end}}
	esac
}
_millrace "$@"
`

const fishCompletion = `# fish completion of millrace, generated from its flags
{{- range .}}{{$group := .Path}}{{range .Commands}}
complete -c millrace -n '{{if $group}}__fish_seen_subcommand_from {{$group}}{{else}}__fish_use_subcommand{{end}}' -f -a {{.Name}} -d '{{quote .Help}}'
{{- if not .Group}}{{$seen := print "'__fish_seen_subcommand_from " .Name "'"}}{{if $group}}{{$seen = print "'__fish_seen_subcommand_from " $group "; and __fish_seen_subcommand_from " .Name "'"}}{{end}}
{{- if .Args}}
complete -c millrace -n {{$seen}} -f -a '{{join .Args}}'{{end}}
{{- range .Flags}}
complete -c millrace -n {{$seen}} -l {{.Name}}{{if .Values}} -x -a '{{join .Values}}'{{else if not .Bool}} -r{{end}} -d '{{quote .Help}}'
{{- end}}{{end}}{{end}}{{end}}
`

// completed is a command or a group of commands in the form that the completion scripts need.
type completed struct {
	Path, Name, Help string
	Group            bool
	Flags            []completedFlag
	Args             []string // values of the first argument
}

type completedFlag struct {
	Name, Help string
	Bool       bool
	Values     []string
}

// values returns the words that a flag or an argument accepts, or nil for any.
func values(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(v.EnumSlice(), func(w string) bool { return w == "" })
}

func TestReferenceCompletions(t *testing.T) {
	t.Parallel()
	type group struct {
		Path     string
		Commands []completed
	}
	var groups []group
	var add func(n *kong.Node, path string)
	add = func(n *kong.Node, path string) {
		g := group{Path: path}
		at := len(groups)
		groups = append(groups, g)
		for _, n := range n.Children {
			c := completed{Path: strings.TrimSpace(path + " " + n.Name), Name: n.Name, Help: n.Help, Group: len(n.Children) > 0}
			if c.Group {
				add(n, c.Path)
			}
			for _, f := range n.Flags {
				if !f.Hidden {
					c.Flags = append(c.Flags, completedFlag{f.Name, f.Help, f.IsBool(), values(f.Value)})
				}
			}
			if len(n.Positional) > 0 {
				c.Args = values(n.Positional[0])
			}
			g.Commands = append(g.Commands, c)
		}
		groups[at] = g
	}
	add(model(t).Node, "")
	for shell, text := range map[string]string{"millrace.bash": bashCompletion, "_millrace": zshCompletion, "millrace.fish": fishCompletion} {
		quote := strings.NewReplacer("'", "’", `\`, `\\`)
		if shell == "_millrace" {
			quote = strings.NewReplacer("'", "’", `\`, `\\`, ":", `\:`, "[", `\[`, "]", `\]`)
		}
		tm, err := template.New(shell).Funcs(template.FuncMap{
			"join": func(words []string) string { return strings.Join(words, " ") }, "quote": quote.Replace,
		}).Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := tm.Execute(&b, groups); err != nil {
			t.Fatal(err)
		}
		checkReference(t, "../../packaging/completions/"+shell, b.String())
	}
}

// bash completes commands, flags and values.
func TestRealCompletion(t *testing.T) {
	t.Parallel()
	bash := testkit.Real(t, "bash")
	file, err := filepath.Abs("../../packaging/completions/millrace.bash")
	if err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]string{
		"ser":                     "serve",
		"keys re":                 "revoke",
		"keys revoke --js":        "--json",
		"serve --as cr":           "crawl",
		"serve --as = cr":         "crawl",
		"--quiet serve --log-lev": "--log-level",
		"snippet sys":             "systemd",
		"read index.ht":           "",
	} {
		script := `source "$0"; COMP_WORDS=(millrace ` + words + `); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _millrace; echo "${COMPREPLY[*]}"`
		if out, err := exec.CommandContext(t.Context(), bash, "-euc", script, file).CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%q: %v, %q, want %q", words, err, out, want)
		}
	}
}
