package static

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// s3Options are the fields that an S3 object stores, with the options of the aws command that
// set them.
var s3Options = map[string]string{
	"Cache-Control": "--cache-control", contentEncoding: "--content-encoding", contentType: "--content-type",
}

// s3Metadata returns the fields of a file that its object stores.
func (b *Build) s3Metadata(l *line) (out []field) {
	if l.Set == 0 {
		return nil
	}
	for _, f := range b.lists[l.Set-1] {
		if s3Options[f.Name] != "" {
			out = append(out, f)
		}
	}
	return out
}

// s3Common returns the other fields that all documents have in common. The response headers
// policy of CloudFront sends them with every response.
func (b *Build) s3Common() (out []field) {
	for i, list := range b.lists {
		var others []field
		for _, f := range list {
			if s3Options[f.Name] == "" && f.Name != acceptRanges {
				others = append(others, f)
			}
		}
		if i > 0 {
			others = both(out, others)
		}
		out = others
	}
	return out
}

// s3Fields returns the fields that CloudFront sends with a file.
func (b *Build) s3Fields(l *line) []field { return append(b.s3Common(), b.s3Metadata(l)...) }

// s3 writes the script that uploads the folder, and the configuration of CloudFront.
func (b *Build) s3() error {
	if err := b.hiddenFile("cloudfront-headers.json", b.cloudFrontHeaders); err != nil {
		return err
	}
	if err := b.hiddenFile("cloudfront-function.js", cloudFrontFunction); err != nil {
		return err
	}
	return b.hiddenFile("s3.sh", b.s3Script)
}

// cloudFrontHeaders writes a response headers policy.
func (b *Build) cloudFrontHeaders(w *bufio.Writer) error {
	type custom struct {
		Header   string
		Value    string
		Override bool
	}
	type items[T any] struct {
		Quantity int
		Items    []T
	}
	type cors struct {
		AccessControlAllowOrigins     items[string]
		AccessControlAllowHeaders     items[string]
		AccessControlAllowMethods     items[string]
		AccessControlAllowCredentials bool
		OriginOverride                bool
	}
	type contentOptions struct{ Override bool }
	type security struct{ ContentTypeOptions contentOptions }
	policy := struct {
		Name                  string
		Comment               string
		CorsConfig            *cors          `json:",omitempty"`
		SecurityHeadersConfig *security      `json:",omitempty"`
		CustomHeadersConfig   *items[custom] `json:",omitempty"`
	}{Name: "millrace", Comment: "Header fields of the documents of millrace build"}
	var others []custom
	for _, f := range b.s3Common() {
		switch {
		case f.Name == allowOrigin && f.Value == "*":
			policy.CorsConfig = &cors{
				AccessControlAllowOrigins: items[string]{1, []string{"*"}}, AccessControlAllowHeaders: items[string]{1, []string{"*"}},
				AccessControlAllowMethods: items[string]{2, []string{"GET", "HEAD"}},
			}
		case f.Name == "X-Content-Type-Options":
			policy.SecurityHeadersConfig = &security{contentOptions{true}}
		default:
			others = append(others, custom{f.Name, f.Value, false})
		}
	}
	if others != nil {
		policy.CustomHeadersConfig = &items[custom]{len(others), others}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(policy)
}

// cloudFrontFunction writes a function that adds index.html to requests for folders, because S3 has
// no index files.
func cloudFrontFunction(w *bufio.Writer) error {
	_, err := w.WriteString(`function handler(event) {
  var request = event.request;
  if (request.uri.endsWith('/')) request.uri += 'index.html';
  return request;
}
`)
	return err
}

// s3Group is a group of files with the same metadata: every file with an extension, or single
// files.
type s3Group struct {
	fields   []field
	patterns []string
}

// s3Groups returns the files that need metadata. If all files with an extension have the same
// metadata, the extension represents them.
func (b *Build) s3Groups() ([]*s3Group, error) {
	mixed, first := make(map[string]bool), make(map[string]string)
	key := func(l *line) string { return fmt.Sprint(b.s3Metadata(l)) }
	err := b.each(func(l *line) error {
		ext := path.Ext(l.Name)
		k, seen := first[ext]
		first[ext], mixed[ext] = key(l), mixed[ext] || ext == "" || seen && k != key(l)
		return nil
	})
	if err != nil {
		return nil, err
	}
	groups := make(map[string]*s3Group)
	err = b.each(func(l *line) error {
		fields := b.s3Metadata(l)
		if len(fields) == 0 {
			return nil
		}
		g := groups[key(l)]
		if g == nil {
			g = &s3Group{fields: fields}
			groups[key(l)] = g
		}
		pattern := strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(l.Name)
		if ext := path.Ext(l.Name); !mixed[ext] {
			pattern = "*" + ext
		}
		if n := len(g.patterns); n == 0 || g.patterns[n-1] != pattern {
			g.patterns = append(g.patterns, pattern)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []*s3Group
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		g := groups[k]
		slices.Sort(g.patterns)
		g.patterns = slices.Compact(g.patterns)
		out = append(out, g)
	}
	return out, nil
}

// s3Script writes the script. It uploads a file only if it has changed.
func (b *Build) s3Script(w *bufio.Writer) error {
	groups, err := b.s3Groups()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, `#!/bin/sh
# Written by millrace build: uploads the folder with the metadata of its documents.
#
#     sh .millrace/s3.sh BUCKET [DISTRIBUTION]
#
# Once, for CloudFront in front of the bucket:
#
#     aws cloudfront create-response-headers-policy --response-headers-policy-config file://cloudfront-headers.json
#
# Attach that policy to the cache behavior, and cloudfront-function.js as its
# viewer request function.
set -eu
[ $# -ge 1 ] || { echo "usage: s3.sh BUCKET [DISTRIBUTION]" >&2; exit 2; }
cd "$(dirname "$0")/.."
to="s3://$1"%s
`, quotedShell(b.prefix))
	var rest []string
	for _, g := range groups {
		fmt.Fprint(w, "\naws s3 sync . \"$to\" --delete --exclude '*'")
		for _, p := range g.patterns {
			fmt.Fprint(w, " --include "+quotedShell(p))
			rest = append(rest, p)
		}
		fmt.Fprint(w, " --exclude '"+hidden+"/*'")
		for _, f := range g.fields {
			fmt.Fprint(w, " "+s3Options[f.Name]+" "+quotedShell(f.Value))
		}
	}
	fmt.Fprint(w, "\naws s3 sync . \"$to\" --delete --exclude '"+hidden+"/*'")
	for _, p := range rest {
		fmt.Fprint(w, " --exclude "+quotedShell(p))
	}
	_, err = w.WriteString("\n[ $# -lt 2 ] || aws cloudfront create-invalidation --distribution-id \"$2\" --paths '/*'\n")
	return err
}

// quotedShell quotes a word for the shell.
func quotedShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
