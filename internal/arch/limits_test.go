package arch

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"time"
)

// limitsPage has tables whose rows name a limit, its value, the package and name that set it, and
// what happens beyond it.
const limitsPage = "docs/explanation/threat-model.md"

var (
	limitRow   = regexp.MustCompile("(?m)^\\| ([^|]+) \\| ([0-9][^|]*) \\| `([a-z./]+)` `(\\w+)` \\| [^|]+ \\|$")
	limitFlag  = regexp.MustCompile("(?m)^\\| [^|]+ \\| [^|]+ \\| `--([a-z-]+)` \\| [^|]+ \\|$")
	limitTable = regexp.MustCompile(`(?m)^\| limit \|`)
)

// checkLimits finds rows whose value is not the one in the code: a constant of that name, or the
// default of an option.
func checkLimits(t *tree) []string {
	var problems []string
	page := t.text[limitsPage]
	for _, m := range limitRow.FindAllStringSubmatch(page, -1) {
		p := t.packages[m[3]]
		if p == nil {
			problems = append(problems, fmt.Sprintf("%s: package %s not found", limitsPage, m[3]))
			continue
		}
		want, got := limitValue(m[2]), p.settings(m[4])
		if want == nil || !slices.ContainsFunc(got, func(v constant.Value) bool { return constant.Compare(v, token.EQL, want) }) {
			problems = append(problems, fmt.Sprintf("%s: %s: %s, but %s of %s is %v", limitsPage, m[1], m[2], m[4], m[3], got))
		}
	}
	for _, m := range limitFlag.FindAllStringSubmatch(page, -1) {
		if !strings.Contains(t.text["docs/reference/configuration.md"], "| `"+m[1]+"` |") {
			problems = append(problems, fmt.Sprintf("%s: flag --%s not found", limitsPage, m[1]))
		}
	}
	rows := 0
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| ") && !limitTable.MatchString(line) {
			rows++
		}
	}
	if n := len(limitRow.FindAllString(page, -1)) + len(limitFlag.FindAllString(page, -1)); n != rows {
		problems = append(problems, fmt.Sprintf("%s: %d of %d rows name a value and what sets it", limitsPage, n, rows))
	}
	return problems
}

// settings returns the values of the constants of a name, and the defaults of options of that
// name: of cmp.Or(o.NAME, value) and of NAME: value.
func (p *folder) settings(name string) []constant.Value {
	var out []constant.Value
	add := func(e ast.Expr) {
		if v := p.value(e); v != nil {
			out = append(out, v)
		}
	}
	for _, f := range p.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, id := range n.Names {
					if id.Name == name && i < len(n.Values) && !f.test {
						add(n.Values[i])
					}
				}
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Or" && len(n.Args) == 2 && !f.test && lastName(n.Args[0]) == name {
					add(n.Args[1])
				}
			case *ast.KeyValueExpr:
				if lastName(n.Key) == name && !f.test {
					add(n.Value)
				}
			}
			return true
		})
	}
	return out
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// durations are the units of package time.
var durations = map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// value returns the value of a constant expression of numbers and durations, or nil.
func (p *folder) value(e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.INT {
			return constant.MakeFromLiteral(e.Value, e.Kind, 0)
		}
	case *ast.ParenExpr:
		return p.value(e.X)
	case *ast.SelectorExpr:
		if d, ok := durations[e.Sel.Name]; ok {
			return constant.MakeInt64(int64(d))
		}
	case *ast.BinaryExpr:
		x, y := p.value(e.X), p.value(e.Y)
		if x == nil || y == nil {
			return nil
		}
		if n, ok := constant.Uint64Val(y); ok && e.Op == token.SHL {
			return constant.Shift(x, e.Op, uint(n))
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	return nil
}

var (
	limitNumber = regexp.MustCompile(`^([0-9][0-9,]*)(?: ([A-Za-z]+))?`)
	limitUnits  = map[string]int64{
		"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "MB": 1e6, "GB": 1e9,
		"s": int64(time.Second), "min": int64(time.Minute), "h": int64(time.Hour),
	}
)

// limitValue returns the value of a cell such as "64 KiB", "10 s" or "4,096", or nil.
func limitValue(cell string) constant.Value {
	m := limitNumber.FindStringSubmatch(cell)
	if m == nil || limitUnits[m[2]] == 0 {
		return nil
	}
	n := constant.MakeFromLiteral(strings.ReplaceAll(m[1], ",", ""), token.INT, 0)
	return constant.BinaryOp(n, token.MUL, constant.MakeInt64(limitUnits[m[2]]))
}
