package static

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Names of the files that Netlify and Cloudflare Pages read.
const (
	headersName   = "_headers"
	redirectsName = "_redirects"
)

// Limits of Cloudflare Pages, and of Vercel, whose limit of routes includes rewrites. Netlify
// documents no limits for headers.
const (
	maxRules        = 100
	maxRulesNetlify = 10_000
	maxRulesVercel  = 1024
	maxRuleLine     = 2000
	maxRedirects    = 2000
)

// unsettable contains the fields that a _headers file must not set. Netlify ignores
// Content-Encoding, and Cloudflare would compress the bytes again.
var unsettable = map[string]bool{contentEncoding: true, acceptRanges: true}

// settable returns the fields of a common header that a _headers file can set.
func (b *Build) settable(set int) (out []field) {
	if set == 0 {
		return nil
	}
	for _, f := range b.lists[set-1] {
		if !unsettable[f.Name] && len(f.Name)+len(f.Value)+4 <= maxRuleLine {
			out = append(out, f)
		}
	}
	return out
}

// configure writes the files that the host reads.
func (b *Build) configure(ctx context.Context) (err error) {
	if b.kind.rules > 0 {
		if b.rules, err = b.headers(); err != nil {
			return err
		}
		b.Report.Rules = len(b.rules)
	}
	err = b.each(func(l *line) error {
		if l.separate() {
			b.Report.Separate++
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return b.kind.write(b)
}

// headersFiles writes the _headers and _redirects files.
func (b *Build) headersFiles() error {
	var text bytes.Buffer
	copyOwn(&text, b.own[headersName])
	if len(b.rules) > 0 {
		text.WriteString("# Written by millrace build: header fields of the protocols' documents.\n")
	}
	for _, r := range b.rules {
		text.WriteString(r.path + "\n")
		for _, f := range r.fields {
			text.WriteString("  " + f.Name + ": " + f.Value + "\n")
		}
	}
	return errors.Join(b.ownFile(headersName, text.Bytes()), b.redirects())
}

// redirects writes the _redirects file, which maps the paths of documents to separate names.
func (b *Build) redirects() error {
	var text bytes.Buffer
	copyOwn(&text, b.own[redirectsName])
	left := maxRedirects - b.rulesOf(redirectsName)
	err := b.each(func(l *line) error {
		if l.separate() && left > 0 {
			left--
			fmt.Fprintf(&text, "%s %s 200\n", b.prefix+l.Path, b.prefix+"/"+escaped(l.Name))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.ownFile(redirectsName, text.Bytes())
}

// copyOwn copies the site's own text to the start of a file.
func copyOwn(to, own *bytes.Buffer) {
	if own == nil || own.Len() == 0 {
		return
	}
	to.Write(own.Bytes())
	if own.Bytes()[own.Len()-1] != '\n' {
		to.WriteByte('\n')
	}
	to.WriteByte('\n')
}

// rulesOf counts the site's own rules in a file.
func (b *Build) rulesOf(name string) (n int) {
	own := b.own[name]
	if own == nil {
		return 0
	}
	if name == vercelName {
		_, headers, rewrites, _ := b.vercelOwn() // vercel returns the error
		return len(headers) + len(rewrites)
	}
	for text := range strings.Lines(own.String()) {
		if strings.TrimSpace(text) != "" && text[0] != ' ' && text[0] != '\t' && text[0] != '#' {
			n++
		}
	}
	return n
}

// ownFile writes a file of the build, if there is text for it.
func (b *Build) ownFile(name string, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if why := b.take(name, b.at); why != "" {
		b.Report.leave("/"+name, "", "name-taken", why)
		return nil
	}
	o := &output{build: b, name: name}
	defer func() { _ = o.discard() }()
	if _, err := o.Write(text); err != nil {
		return err
	}
	return o.finish(time.Time{}, new(entry))
}

// headers returns the rules of the _headers file: first patterns, then a rule for each path that
// still lacks fields, up to the limit. The root is first.
func (b *Build) headers() ([]rule, error) {
	left := b.kind.rules - b.rulesOf(b.kind.own[0])
	rules, err := b.wildcards()
	if err != nil {
		return nil, err
	}
	rules = rules[:max(0, min(len(rules), left))]
	wild := len(rules)
	for _, atRoot := range []bool{true, false} {
		err := b.each(func(l *line) error {
			if (l.Path == "/" && l.Protocol == "") != atRoot {
				return nil
			}
			r := rule{path: b.prefix + l.Path, fields: b.settable(l.Set)}
			if l.Link != "" && len(l.Link)+8 <= maxRuleLine {
				r.fields = append(r.fields, field{"Link", l.Link})
			}
			for _, w := range rules[:wild] {
				if w.matches(r.path) {
					r.fields = without(r.fields, w.fields)
				}
			}
			switch {
			case len(r.fields) == 0:
			case len(rules) < left && !strings.Contains(r.path, ":"): // a ":" would start a placeholder
				rules = append(rules, r)
			case l.Protocol != "":
				b.Report.IncompleteHeaders++ // pages of the site also have the links in their head
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return rules, nil
}
