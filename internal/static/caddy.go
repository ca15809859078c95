package static

import (
	"bufio"
	"fmt"
	"strings"
)

// backquoted returns s as a token of a Caddyfile without placeholders. It returns false if
// that is impossible.
func backquoted(s string) (string, bool) {
	if strings.ContainsAny(s, "`{}\n\r") {
		return "", false
	}
	if s == "" {
		s = "-" // absent
	}
	return "`" + s + "`", true
}

// caddy writes the snippet for the site block of a Caddyfile.
func (b *Build) caddy(w *bufio.Writer) error {
	fmt.Fprint(w, `# Written by millrace build, for Caddy 2.6 or later. Import this file in the block of
# the site, next to its root and its file_server. It changes when documents do:
# reload Caddy after every build. Until then, a new document has the validator
# of its previous version.

map {http.request.orig_uri.path} {millrace_kind} {millrace_file} {millrace_tag} {millrace_date} {millrace_link} {
`)
	used := make(map[int]bool)
	err := b.each(func(l *line) error {
		kind := ""
		if l.Set > 0 {
			kind = fmt.Sprint("d", l.Set)
			used[l.Set] = true
		} else if l.Link == "" {
			return nil
		}
		var tokens []string
		for _, s := range []string{b.uri(l.Path), kind, "/" + l.Name, l.Tag, l.Date, l.Link} {
			t, ok := backquoted(s)
			if !ok {
				return nil
			}
			tokens = append(tokens, t)
		}
		fmt.Fprintf(w, "\t%s\n", strings.Join(tokens, " "))
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprint(w, "\tdefault \"\" \"\" \"\" \"\" \"\"\n}\n"+`
@millrace_linked expression `+"`{millrace_link} != \"\"`"+`
header @millrace_linked Link {millrace_link}

@millrace_hidden path /.millrace /.millrace/*
respond @millrace_hidden 404
`)
	for i, fields := range b.lists {
		if used[i+1] {
			caddyRoute(w, i+1, fields, b.immutable[i])
		}
	}
	return nil
}

// caddyRoute writes the route of documents with a common header.
func caddyRoute(w *bufio.Writer, set int, fields []field, immutable bool) {
	fmt.Fprintf(w, `
@millrace_d%[1]d expression `+"`{millrace_kind} == \"d%[1]d\"`"+`
route @millrace_d%[1]d {
`, set)
	coding := "" // set the coding last, because otherwise the file server sends no Content-Length
	for _, f := range fields {
		if f.Name == acceptRanges {
			continue
		}
		if f.Name == contentEncoding {
			coding, _ = backquoted(f.Value)
			continue
		}
		if v, ok := backquoted(f.Value); ok {
			fmt.Fprintf(w, "\theader %s %s\n", f.Name, v)
		}
		if f.Name == allowOrigin {
			fmt.Fprintf(w, `	@millrace_options%[1]d method OPTIONS
	handle @millrace_options%[1]d {
		header Access-Control-Allow-Methods "GET, HEAD, OPTIONS"
		header Access-Control-Allow-Headers "If-None-Match, Authorization"
		header Access-Control-Max-Age 86400
		respond 204
	}
`, set)
		}
	}
	fmt.Fprintf(w, `	@millrace_tagged%[1]d expression `+"`{millrace_tag} != \"\"`"+`
	header @millrace_tagged%[1]d {
		ETag {millrace_tag}
		defer
	}
`, set)
	if coding != "" {
		fmt.Fprintf(w, "\theader {\n\t\t%s %s\n\t\tdefer\n\t}\n", contentEncoding, coding)
	}
	if immutable {
		// The file server compares If-Range with its own validator, so remove an If-Range that
		// matches the document's validator.
		fmt.Fprintf(w, `	@millrace_rest%[1]d expression `+"`{millrace_tag} != \"\" && {http.request.header.If-Range} == {millrace_tag}`"+`
	request_header @millrace_rest%[1]d -If-Range
`, set)
	}
	fmt.Fprintf(w, `	@millrace_same%[1]d expression `+
		"`{millrace_tag} != \"\" && ({http.request.header.If-None-Match} == \"*\" || {http.request.header.If-None-Match}.contains({millrace_tag}))`"+`
	header @millrace_same%[1]d Last-Modified {millrace_date}
	respond @millrace_same%[1]d 304
	rewrite * {millrace_file}
	file_server
}
`, set)
}
