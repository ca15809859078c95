package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// checkComments finds packages and exported names without a proper comment.
func checkComments(t *tree) []string {
	var problems []string
	for _, p := range t.sorted() {
		if p.name == "" {
			continue // the folder has only tests
		}
		want, docs := "Package "+p.name+" ", 0
		if p.name == "main" {
			want = "Command " + p.path[strings.LastIndexByte(p.path, '/')+1:] + " "
		}
		for _, f := range p.files {
			if f.test {
				continue
			}
			if f.Doc.Text() != "" {
				docs++
				if !strings.HasPrefix(f.Doc.Text(), want) {
					problems = append(problems, t.at(f.Package, "the package comment does not start with %q", want))
				}
			}
			for _, d := range f.Decls {
				problems = append(problems, t.declaration(d)...)
			}
		}
		if docs != 1 {
			problems = append(problems, fmt.Sprintf("%s: %d package comments, want 1", p.path, docs))
		}
	}
	return problems
}

func (t *tree) declaration(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
			return t.comment(d.Name, d.Doc, true)
		}
	case *ast.GenDecl:
		return t.group(d)
	}
	return nil
}

// group checks the names of one type, const or var declaration. For constants and
// variables, the group's comment suffices.
func (t *tree) group(d *ast.GenDecl) []string {
	var problems []string
	single := !d.Lparen.IsValid()
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if !s.Name.IsExported() {
				continue
			}
			doc := s.Doc
			if single {
				doc = d.Doc
			}
			problems = append(problems, t.comment(s.Name, doc, true)...)
			if face, ok := s.Type.(*ast.InterfaceType); ok {
				for _, m := range face.Methods.List {
					for _, name := range m.Names {
						if name.IsExported() && m.Doc == nil && m.Comment == nil {
							problems = append(problems, t.at(name.Pos(), "%s.%s has no comment", s.Name.Name, name.Name))
						}
					}
				}
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				switch {
				case !name.IsExported():
				case single:
					problems = append(problems, t.comment(name, d.Doc, true)...)
				case d.Doc == nil && s.Comment == nil:
					problems = append(problems, t.comment(name, s.Doc, d.Tok == token.VAR)...)
				}
			}
		}
	}
	return problems
}

func receiver(d *ast.FuncDecl) string {
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// comment requires a comment that starts with the name, or with an article and the
// name.
func (t *tree) comment(name *ast.Ident, doc *ast.CommentGroup, named bool) []string {
	text := doc.Text()
	if text == "" {
		return []string{t.at(name.Pos(), "%s has no comment", name.Name)}
	}
	words := strings.Fields(text)
	if a := words[0]; len(words) > 1 && (a == "A" || a == "An" || a == "The") {
		words = words[1:]
	}
	if named && strings.TrimRight(words[0], ",.:;") != name.Name {
		return []string{t.at(name.Pos(), "the comment of %s does not start with its name", name.Name)}
	}
	return nil
}
