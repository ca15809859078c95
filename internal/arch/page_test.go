package arch

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The page that the tables stand on.
const page = "ARCHITECTURE.md"

var quoted = regexp.MustCompile("`([^`]+)`")

// names gives what stands in backquotes.
func names(cell string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// tableRows gives the rows of the Markdown table whose first head cells are
// the given ones, without its head.
func tableRows(md string, head ...string) [][]string {
	var rows [][]string
	inside := false
	for line := range strings.Lines(md) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if inside {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !inside:
			inside = len(cells) >= len(head) && slices.Equal(cells[:len(head)], head)
		case strings.HasPrefix(cells[0], "--"):
		default:
			rows = append(rows, cells)
		}
	}
	return rows
}

// permission is one row of the table of packages.
type permission struct{ imports, testOnly []string }

func permissions(md string) (map[string]permission, []string) {
	out, problems := map[string]permission{}, []string(nil)
	rows := tableRows(md, "package", "what it is", "imports", "test only")
	if len(rows) == 0 {
		return nil, []string{page + ": no table of packages"}
	}
	for _, r := range rows {
		name := names(r[0])
		if len(name) != 1 || len(r) != 4 {
			problems = append(problems, fmt.Sprintf("%s: row %q is no package with four cells", page, r[0]))
			continue
		}
		if _, twice := out[name[0]]; twice {
			problems = append(problems, fmt.Sprintf("%s: package %s has two rows", page, name[0]))
		}
		out[name[0]] = permission{names(r[2]), names(r[3])}
	}
	return out, problems
}

// owner is one row of the table of outside modules.
type owner struct {
	packages []string
	tests    bool // any test may import it
}

func owners(md string) (map[string]owner, []string) {
	out, problems := map[string]owner{}, []string(nil)
	for _, r := range tableRows(md, "module", "owners", "why") {
		name := names(r[0])
		if len(name) != 1 || len(r) != 3 || r[2] == "" {
			problems = append(problems, fmt.Sprintf("%s: row %q is no module with owners and a reason", page, r[0]))
			continue
		}
		if _, twice := out[name[0]]; twice {
			problems = append(problems, fmt.Sprintf("%s: module %s has two rows", page, name[0]))
		}
		rest := quoted.ReplaceAllString(r[1], "")
		out[name[0]] = owner{names(r[1]), strings.Contains(rest, "tests")}
	}
	return out, problems
}

// marker opens a generated part of a page; "<!-- end -->" closes it.
var marker = regexp.MustCompile(`^<!-- (example|costs|tiers)\b *(.*?) *-->$`)

// regenerate gives a page with each generated part made anew.
func regenerate(md string, part func(kind, argument string) (string, error)) (string, error) {
	var out strings.Builder
	open := ""
	for line := range strings.Lines(md) {
		trimmed := strings.TrimSpace(line)
		m := marker.FindStringSubmatch(trimmed)
		switch {
		case m != nil && open != "":
			return "", fmt.Errorf("%s stands inside %s", trimmed, open)
		case m != nil:
			body, err := part(m[1], m[2])
			if err != nil {
				return "", fmt.Errorf("%s: %w", trimmed, err)
			}
			open = trimmed
			out.WriteString(trimmed + "\n" + body)
		case trimmed == "<!-- end -->" && open == "":
			return "", fmt.Errorf("<!-- end --> without a beginning")
		case trimmed == "<!-- end -->":
			open = ""
			out.WriteString(line)
		case open == "":
			out.WriteString(line)
		}
	}
	if open != "" {
		return "", fmt.Errorf("%s has no <!-- end -->", open)
	}
	return out.String(), nil
}

// costs gives the table of what each public package pulls in.
func costs(t *tree) string {
	var out strings.Builder
	out.WriteString("| package | pulls in of this module | pulls in from outside |\n|---|---|---|\n")
	for _, p := range t.sorted() {
		if !isPublic(p.path) || p.name == "" {
			continue
		}
		inner, outer := map[string]bool{}, map[string]bool{}
		t.pull(p.path, inner, outer)
		delete(inner, p.path)
		fmt.Fprintf(&out, "| `%s` |%s |%s |\n", p.path, cell(inner), cell(outer))
	}
	return out.String()
}

// pull adds a package, what it imports without its tests, and what that
// imports in turn.
func (t *tree) pull(p string, inner, outer map[string]bool) {
	if inner[p] || t.packages[p] == nil {
		return
	}
	inner[p] = true
	for _, f := range t.packages[p].files {
		if f.test {
			continue
		}
		for _, i := range f.imports {
			switch {
			case i.local != "":
				t.pull(i.local, inner, outer)
			case i.outside():
				outer[moduleOf(i.path, t.required)] = true
			}
		}
	}
}

func cell(set map[string]bool) string {
	var out strings.Builder
	for _, s := range slices.Sorted(maps.Keys(set)) {
		out.WriteString(" `" + s + "`")
	}
	return out.String()
}

func (t *tree) regenerateCosts() (string, error) {
	return regenerate(t.text[page], func(kind, _ string) (string, error) {
		if kind != "costs" {
			return "", fmt.Errorf("no part %q here", kind)
		}
		return costs(t), nil
	})
}

// checkCosts finds packages that pull in other things than the page says.
func checkCosts(t *tree) []string {
	want, err := t.regenerateCosts()
	if err != nil {
		return []string{page + ": " + err.Error()}
	}
	if !strings.Contains(want, "<!-- costs -->") {
		return []string{page + ": no part <!-- costs -->"}
	}
	return stale(page, t.text[page], want, "go test ./internal/arch -run Costs -update")
}

// stale compares a page with what it should be, and names the first line
// that differs.
func stale(name, got, want, command string) []string {
	if got == want {
		return nil
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	line := func(s []string) string {
		if i < len(s) {
			return s[i]
		}
		return ""
	}
	return []string{fmt.Sprintf("%s:%d: stale: %q should be %q; see what changed, then: %s", name, i+1, line(g), line(w), command)}
}
