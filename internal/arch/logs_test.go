package arch

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// logCalls are the methods of a logger, with the number of arguments before the
// attributes. The last of those is the message, except for With.
var logCalls = map[string]int{
	"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3, "LogAttrs": 3, "With": 0,
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2,
}

// logKeyRows are the keys of log attributes.
func logKeyRows(t *tree) map[string][]string {
	rows := map[string][]string{}
	t.logs(func(key ast.Expr) {
		if s, ok := literal(key); ok {
			rows[s] = nil
		}
	}, func(ast.Expr) {})
	return rows
}

// checkLogs finds log messages and keys that are not string literals.
func checkLogs(t *tree) []string {
	var problems []string
	t.logs(func(key ast.Expr) {
		if _, ok := literal(key); !ok {
			problems = append(problems, t.at(key.Pos(), "the key of a log attribute is not a string literal"))
		}
	}, func(message ast.Expr) {
		if _, ok := literal(message); !ok {
			problems = append(problems, t.at(message.Pos(), "the log message is not a string literal"))
		}
	})
	return problems
}

// logs calls key for every key of a log attribute outside tests, and message for every
// log message.
func (t *tree) logs(key, message func(ast.Expr)) {
	for _, p := range t.sorted() {
		for _, f := range p.files {
			if f.test {
				continue
			}
			ast.Inspect(f.File, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				s, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if isAttr(s) {
					key(call.Args[0])
					return true
				}
				before, ok := logCalls[s.Sel.Name]
				if !ok || !isLogger(s.X) || len(call.Args) < before {
					return true
				}
				if before > 0 {
					message(call.Args[before-1])
				}
				for args := call.Args[before:]; len(args) > 0 && (call.Ellipsis == token.NoPos || len(args) > 1); {
					if c, ok := args[0].(*ast.CallExpr); ok {
						if s, ok := c.Fun.(*ast.SelectorExpr); ok && isAttr(s) {
							args = args[1:]
							continue
						}
					}
					key(args[0])
					args = args[min(2, len(args)):]
				}
				return true
			})
		}
	}
}

// isAttr reports whether a function of slog creates an attribute.
func isAttr(s *ast.SelectorExpr) bool {
	switch s.Sel.Name {
	case "String", "Int", "Int64", "Uint64", "Float64", "Bool", "Time", "Duration", "Any", "Group":
		return root(s.X) == "slog"
	}
	return false
}

// isLogger reports whether an expression has the name of a logger.
func isLogger(e ast.Expr) bool {
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	case *ast.CallExpr: // logger.With(…)
		s, ok := e.Fun.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "With" && isLogger(s.X)
	}
	name = strings.ToLower(name)
	return name == "log" || name == "logger" || name == "slog"
}

// literal returns the text of a string literal.
func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}
