package static

import (
	"bufio"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Header fields that the configuration of some hosts treats differently from others.
const (
	contentType     = "Content-Type"
	contentEncoding = "Content-Encoding"
	acceptRanges    = "Accept-Ranges"
	allowOrigin     = "Access-Control-Allow-Origin"
)

// quoted returns s as a string of nginx's configuration without variables. It returns false if s
// contains a dollar sign, a NUL or a line end, which cannot be escaped.
func quoted(s string) (string, bool) {
	if strings.ContainsAny(s, "$\x00\n\r") {
		return "", false
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`, true
}

// uri returns a request path in the decoded form that servers compare.
func (b *Build) uri(escapedPath string) string {
	p, err := url.PathUnescape(b.prefix + escapedPath)
	if err != nil {
		return b.prefix + escapedPath
	}
	return p
}

// nginxMaps writes the snippet for the http block. It maps each document to its location, file,
// validator and links.
//
// nginx sends a validator only if the file has the date from the build. Therefore new bytes never
// get an old tag between a build and the next reload.
func (b *Build) nginxMaps(w *bufio.Writer) error {
	longest, n := 0, 0
	err := b.each(func(l *line) error {
		longest = max(longest, len(b.uri(l.Path)), len(b.prefix)+1+len(l.Name))
		n++
		return nil
	})
	if err != nil {
		return err
	}
	bucket := 128
	for bucket < longest+48 {
		bucket *= 2
	}
	fmt.Fprintf(w, `# Written by millrace build. Include this file in the http block of nginx, and
# nginx.conf, which is next to it, in the server block whose root is the folder
# of the build. Reload nginx after every build.
#
# If your http block has the next two lines already, keep the larger numbers.
map_hash_bucket_size %d;
map_hash_max_size %d;

`, bucket, max(2048, 4*n))
	maps := []struct {
		head  string
		value func(l *line) (key, value string)
	}{
		{"# The location that serves each document.\nmap $uri $millrace_kind", func(l *line) (string, string) {
			if l.Set == 0 {
				return "", ""
			}
			return b.uri(l.Path), fmt.Sprint("d", l.Set)
		}},
		{"# The file of each document whose file has a different name.\nmap $uri $millrace_renamed", func(l *line) (string, string) {
			if at := b.uri(l.Path); l.Set > 0 && at != b.uri("/"+escaped(l.Name)) {
				return at, b.uri("/" + escaped(l.Name))
			}
			return "", ""
		}},
		{"# The validator of each document, and the modification date of the file that it belongs to.\nmap $millrace_doc $millrace_entry", func(l *line) (string, string) {
			if l.Set == 0 || l.Tag == "" {
				return "", ""
			}
			return b.uri(l.Path), l.Tag + " " + l.Date
		}},
		{"# The links of each document.\nmap $millrace_doc $millrace_doclink", func(l *line) (string, string) {
			if l.Set == 0 {
				return "", ""
			}
			return b.uri(l.Path), l.Link
		}},
		{"# The links of each page of the site.\nmap $uri $millrace_link", func(l *line) (string, string) {
			if l.Set > 0 {
				return "", ""
			}
			return b.uri("/" + escaped(l.Name)), l.Link
		}},
	}
	for _, m := range maps {
		fmt.Fprintf(w, "%s {\n", m.head)
		err := b.each(func(l *line) error {
			k, v := m.value(l)
			if k == "" || v == "" {
				return nil
			}
			k, ok := quoted(k)
			v, fine := quoted(v)
			if ok && fine {
				fmt.Fprintf(w, "\t%s %s;\n", k, v)
			}
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Fprint(w, "}\n\n")
	}
	fmt.Fprint(w, `map $millrace_renamed $millrace_file {
	default $millrace_renamed;
	"" $millrace_path;
}

# The Last-Modified date of a document. nginx sends none with a 304, and that of the
# file with a 200.
map "$status $millrace_entry" $millrace_modified {
	default $sent_http_last_modified;
	"~^304 \S+ (.+)$" $1;
}

# The ETag of a document, for a 304, and for a 200 if its file has the date of the build.
map "$millrace_entry $sent_http_last_modified" $millrace_etag {
	"~^(\S+) (.+) \2$" $1;
	"~^(\S+) .+ $" $1;
}

# Whether the client has the current version of a document.
map "$millrace_entry $http_if_none_match" $millrace_same {
	"~^(\"[^\"]+\") [^\"]+GMT .*\1" 1;
	"~^\"[^\"]+\" [^\"]+GMT \s*\*\s*$" 1;
}

map "$request_method $millrace_same" $millrace_unmodified {
	"GET 1" 1;
	"HEAD 1" 1;
}
`)
	return nil
}

// nginxServer writes the snippet for the server block.
func (b *Build) nginxServer(w *bufio.Writer) error {
	fmt.Fprintf(w, `# Written by millrace build. Include this file in the server block of nginx whose
# root is the folder of the build, and nginx-http.conf in the http block. Both
# change when documents do: reload nginx after every build.

set $millrace_path $uri;
set $millrace_doc "";
if ($millrace_kind) {
	set $millrace_doc $uri;
	rewrite ^ /.millrace/$millrace_kind$millrace_file break;
}

# The links of the pages. A location with its own add_header also needs this line.
add_header Link $millrace_link;

# This folder contains the record of the build and this file. Clients get neither.
location ^~ /.millrace/ {
	internal;
	return 404;
}
`)
	used := make(map[int]bool)
	err := b.each(func(l *line) error { used[l.Set] = true; return nil })
	if err != nil {
		return err
	}
	for i, fields := range b.lists {
		if used[i+1] {
			b.nginxLocation(w, i+1, fields)
		}
	}
	return nil
}

// nginxLocation writes the location of documents with a common header.
func (b *Build) nginxLocation(w *bufio.Writer, set int, fields []field) {
	value := func(name string) string {
		for _, f := range fields {
			if f.Name == name {
				return f.Value
			}
		}
		return ""
	}
	fmt.Fprintf(w, "\nlocation ^~ /.millrace/d%d/ {\n\tinternal;\n", set)
	if value(allowOrigin) != "" {
		fmt.Fprint(w, `	if ($request_method = OPTIONS) {
		add_header Access-Control-Allow-Origin *;
		add_header Access-Control-Allow-Methods "GET, HEAD, OPTIONS";
		add_header Access-Control-Allow-Headers "If-None-Match, Authorization";
		add_header Access-Control-Max-Age 86400;
		return 204;
	}
`)
	}
	fmt.Fprintf(w, `	if ($millrace_unmodified) {
		return 304;
	}
	rewrite "^/\.millrace/d%d%s(/.*)$" $1 break;
	types { }
	default_type %s;
	charset off;
	etag off;
	gzip off;
	gzip_static off;
`, set, strings.ReplaceAll(regexp.QuoteMeta(b.uri("")), `"`, `\"`), mustQuote(value(contentType)))
	for _, f := range fields {
		switch f.Name {
		case contentType:
			continue
		case acceptRanges:
			fmt.Fprint(w, "\tmax_ranges 0;\n")
			continue
		}
		fmt.Fprintf(w, "\tadd_header %s %s;\n", f.Name, mustQuote(f.Value))
	}
	fmt.Fprint(w, "\tadd_header Last-Modified $millrace_modified;\n\tadd_header ETag $millrace_etag;\n\tadd_header Link $millrace_doclink;\n}\n")
}

// mustQuote quotes a value that protocols send with all documents. It replaces a dollar sign,
// but no such value contains one.
func mustQuote(s string) string {
	q, ok := quoted(s)
	if !ok {
		q, _ = quoted(strings.NewReplacer("$", "%24", "\n", " ", "\r", " ", "\x00", "").Replace(s))
	}
	return q
}
