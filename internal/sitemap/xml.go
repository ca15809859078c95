package sitemap

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// element is an open element.
type element struct {
	name     xml.Name // Space is the prefix
	counts   bool     // the element and its ancestors are in a sitemap namespace
	bindings int      // number of bindings outside the element
}

// binding maps a prefix to a namespace.
type binding struct{ prefix, uri string }

// maxBindings limits the search for a prefix. Real lists have at most seven bindings.
const maxBindings = 64

// markup reads one list in XML.
type markup struct {
	p        *parser
	open     []element
	bindings []binding
	entry    Entry
	long     bool     // the entry's URL is too long
	extra    *Element // open element of an extension
	value    []byte
	field    bool // value collects the text of the innermost element
}

// markup reads a list in XML. It matches tags itself, because the decoder either
// rejects a lone "&" or repairs broken markup.
func (p *parser) markup(r io.Reader) error {
	d := xml.NewDecoder(r)
	d.Strict, d.CharsetReader = false, p.in.charset
	m := &markup{p: p}
	for {
		p.in.token = maxToken
		token, err := d.RawToken()
		line, _ := d.InputPos()
		if err != nil {
			e, broken := errors.AsType[*xml.SyntaxError](err)
			switch {
			case errors.Is(err, io.EOF), broken && e.Msg == "unexpected EOF":
				err = millrace.Coded("xml-truncated", errors.New("document ends before its root element"))
			case broken:
				err = millrace.Coded("xml-syntax", errors.New(e.Msg)) // the position contains the line
			}
			return p.in.fail(line, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			err = m.start(t, line)
		case xml.EndElement:
			if err = m.end(t, line); err == nil && len(m.open) == 0 {
				return nil
			}
		case xml.CharData:
			m.text(t)
		case xml.Directive:
			if f := strings.Fields(strings.ToLower(string(t[:min(len(t), 100)]))); len(m.open) == 0 && len(f) > 1 && f[0] == "doctype" && f[1] == "html" {
				err = formatError(line, "", "", ErrHTML)
			}
		}
		if err != nil {
			return err
		}
	}
}

func (m *markup) start(t xml.StartElement, line int) error {
	depth := len(m.open)
	if depth == maxDepth {
		return limitError(line, "xml-depth", "elements nest deeper than %d", maxDepth)
	}
	e := element{name: t.Name, bindings: len(m.bindings)}
	for _, a := range t.Attr {
		if len(m.bindings) == maxBindings {
			break
		}
		if a.Name.Space == "xmlns" {
			m.bindings = append(m.bindings, binding{a.Name.Local, a.Value})
		} else if a.Name.Space == "" && a.Name.Local == "xmlns" {
			m.bindings = append(m.bindings, binding{"", a.Value})
		}
	}
	space, ours := m.namespace(t.Name.Space)
	e.counts = ours && (depth == 0 || m.open[depth-1].counts)
	m.open = append(m.open, e)
	m.field = false
	switch {
	case depth == 0:
		return m.root(t.Name, space, ours, line)
	case depth == 1 && m.extends(space):
		m.extra = &Element{Name: t.Name.Local, Attr: make(map[string]string, len(t.Attr)), Line: line}
		for _, a := range t.Attr {
			if _, twice := m.extra.Attr[a.Name.Local]; a.Name.Space == "" && !twice {
				m.extra.Attr[a.Name.Local] = a.Value
			}
		}
		m.field, m.value = true, m.value[:0]
	case !e.counts:
	case depth == 1:
		e := Entry{Sitemap: t.Name.Local == "sitemap", Priority: 0.5, Line: line}
		if m.entry, m.long = e, false; !e.Sitemap && t.Name.Local != "url" {
			m.open[depth].counts = false
		}
	case depth == 2:
		m.field, m.value = true, m.value[:0]
	}
	return nil
}

// root returns an error for the root element of another kind of document.
func (m *markup) root(name xml.Name, space string, ours bool, line int) error {
	switch local := strings.ToLower(name.Local); {
	case (name.Local == "urlset" || name.Local == "sitemapindex") && ours:
		return nil
	case name.Local == "urlset" || name.Local == "sitemapindex":
		return formatError(line, "xml-namespace", fmt.Sprintf("unknown namespace %.100q; want the one of sitemaps.org", space), nil)
	case local == "html" || local == "head" || local == "body":
		return formatError(line, "", "", ErrHTML)
	case local == "rss" || local == "feed" || local == "rdf":
		return formatError(line, "", "", ErrFeed)
	}
	return formatError(line, "xml-root", fmt.Sprintf("root element is <%.100s>, want <urlset> or <sitemapindex>", name.Local), nil)
}

// namespace returns the namespace of a prefix, and reports whether it is a sitemap namespace or
// empty. It ignores the host name in a namespace, because many sites misspell it.
func (m *markup) namespace(prefix string) (string, bool) {
	for i := len(m.bindings) - 1; i >= 0; i-- {
		if m.bindings[i].prefix == prefix {
			uri := m.bindings[i].uri
			return uri, uri == "" || strings.Contains(uri, "/schemas/sitemap/0.")
		}
	}
	return "", prefix == ""
}

// extends reports whether a namespace is that of Options.Extension, and Options.Element is set.
func (m *markup) extends(space string) bool {
	return m.p.element != nil && space != "" && space == m.p.space
}

// text adds to the value of a field.
func (m *markup) text(t []byte) {
	if !m.field {
		return
	}
	if len(m.value) == 0 {
		t = bytes.TrimLeft(t, " \t\r\n")
	}
	m.value = append(m.value, t[:min(len(t), 2*maxURL-len(m.value))]...)
}

func (m *markup) end(t xml.EndElement, line int) error {
	depth := len(m.open) - 1
	if depth < 0 {
		return formatError(line, "xml-syntax", fmt.Sprintf("unexpected end tag </%.100s>", t.Name.Local), nil)
	}
	e := m.open[depth]
	if e.name != t.Name {
		return formatError(line, "xml-syntax", fmt.Sprintf("end tag </%.100s> does not match <%.100s>", t.Name.Local, e.name.Local), nil)
	}
	m.open, m.bindings = m.open[:depth], m.bindings[:e.bindings]
	field := m.field
	m.field = false
	switch {
	case depth == 1 && m.extra != nil:
		extra := *m.extra
		extra.Text, m.extra = string(bytes.TrimSpace(m.value)), nil
		return m.p.element(extra)
	case field && depth == 2:
		m.set(e.name.Local, bytes.TrimSpace(m.value))
	case depth == 1 && e.counts && m.long:
		m.p.leave(m.entry.Line, errLong)
	case depth == 1 && e.counts && m.entry.URL == "":
		m.p.leave(m.entry.Line, errNoURL)
	case depth == 1 && e.counts:
		return m.p.emit(m.entry)
	}
	return nil
}

// set stores the value of a field.
func (m *markup) set(name string, value []byte) {
	switch name {
	case "loc":
		if m.entry.URL == "" && len(value) <= maxURL {
			m.entry.URL = string(value)
		}
		m.long = m.entry.URL == "" && len(value) > maxURL
	case "lastmod":
		m.entry.Modified = parseTime(string(value))
	case "changefreq":
		switch f := strings.ToLower(string(value)); f {
		case "always", "hourly", "daily", "weekly", "monthly", "yearly", "never":
			m.entry.ChangeFreq = f
		}
	case "priority":
		if f, err := strconv.ParseFloat(string(value), 64); err == nil && f >= 0 && f <= 1 {
			m.entry.Priority = f
		}
	}
}

// parseTime parses a date and time of the W3C note of 1997, and three common variants: a space
// for the "T", a zone without a colon, and no zone, which is UTC. It returns the zero time for
// other input.
func parseTime(s string) time.Time {
	if len(s) > 40 {
		return time.Time{}
	}
	if len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + strings.TrimLeft(s[11:], " ")
	}
	layouts := []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04"}
	if len(s) <= 10 {
		layouts = []string{time.DateOnly, "2006-01", "2006"}
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
