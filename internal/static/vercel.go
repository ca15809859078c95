package static

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
)

// vercelName is the file that Vercel reads.
const vercelName = "vercel.json"

// vercelRule is a member of headers or rewrites in a vercel.json.
type vercelRule struct {
	Source      string        `json:"source"`
	Headers     []vercelField `json:"headers,omitempty"`
	Destination string        `json:"destination,omitempty"`
}

type vercelField struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// vercelSource returns a pattern of path-to-regexp, which Vercel uses, for the path of a rule.
func vercelSource(p string) string {
	var out strings.Builder
	for _, c := range p {
		switch {
		case c == '*':
			out.WriteString("(.*)")
		case strings.ContainsRune(`.:()[]{}+?!|^$\`, c):
			out.WriteString(`\` + string(c))
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}

// vercelOwn parses the site's own vercel.json.
func (b *Build) vercelOwn() (own map[string]json.RawMessage, headers, rewrites []json.RawMessage, err error) {
	own = make(map[string]json.RawMessage)
	text := b.own[vercelName]
	if text == nil || len(bytes.TrimSpace(text.Bytes())) == 0 {
		return own, nil, nil, nil
	}
	err = json.Unmarshal(text.Bytes(), &own)
	for name, list := range map[string]*[]json.RawMessage{"headers": &headers, "rewrites": &rewrites} {
		if err == nil && own[name] != nil {
			err = json.Unmarshal(own[name], list)
		}
	}
	if err != nil {
		err = fmt.Errorf("%s of the site: %w: %w", vercelName, millrace.ErrInvalid, err)
	}
	return own, headers, rewrites, err
}

// vercel writes vercel.json: the site's own members, and rules for the documents.
func (b *Build) vercel() error {
	own, headers, rewrites, err := b.vercelOwn()
	if err != nil {
		return err
	}
	add := func(to *[]json.RawMessage, r vercelRule) error {
		raw, err := encode(r)
		*to = append(*to, raw)
		return err
	}
	for _, r := range b.rules {
		v := vercelRule{Source: vercelSource(r.path)}
		for _, f := range r.fields {
			v.Headers = append(v.Headers, vercelField{f.Name, f.Value})
		}
		if err := add(&headers, v); err != nil {
			return err
		}
	}
	err = b.each(func(l *line) error {
		if !l.separate() || len(rewrites) >= maxRulesVercel {
			return nil
		}
		return add(&rewrites, vercelRule{Source: vercelSource(b.prefix + l.Path), Destination: b.prefix + "/" + escaped(l.Name)})
	})
	if err != nil {
		return err
	}
	for name, list := range map[string][]json.RawMessage{"headers": headers, "rewrites": rewrites} {
		if len(list) == 0 {
			continue
		}
		if own[name], err = encode(list); err != nil {
			return err
		}
	}
	text, err := encode(own)
	if err != nil {
		return err
	}
	return b.ownFile(vercelName, append(text, '\n'))
}

// encode returns v as JSON. It leaves the angle brackets of links as they are.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}
