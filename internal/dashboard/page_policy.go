package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// policyPage contains the usage policy, the policy that bots read, and the access settings.
type policyPage struct {
	Policy    *millrace.Policy // nil if none
	Fields    []policyField    // members of the policy, each as published by the protocols
	Published []publishedPolicy
	Texts     []policyText
	Signal    string          // Content-Signal of responses, or ""
	Access    *AccessSettings // nil: unknown
	Refuse    []refusedPurpose
	Edit      *policyEdit

	Keys    []keyRow
	HasKeys bool
	Made    *madeKey
	Form    keyForm
}

// policyText is a published text with terms of use, such as robots.txt.
type policyText struct{ Path, Text string }

// policyField is one member of a policy.
type policyField struct {
	Name      string
	Value     string // value as text. If empty, not set.
	Published []publishedField
}

// publishedField is one member of the policy, as published by a protocol.
type publishedField struct {
	Protocol string
	Value    string // value as text. If empty, the protocol does not carry the member.
}

// publishedPolicy is the policy that a reader of one protocol gets.
type publishedPolicy struct {
	Protocol string
	URL      string
	Policy   *millrace.Policy // nil if Err is set
	Err      string
}

// refusedPurpose lists the bots of a purpose that the policy refuses.
type refusedPurpose struct {
	Purpose millrace.Purpose
	Tokens  []string
}

const (
	policyTime   = 10 * time.Second
	maxTextShown = 64 << 10 // maximum number of bytes of a text that are shown
)

// policy shows the policy and the keys.
func (d *Dashboard) policy(r *http.Request) (*reply, error) {
	p, err := d.policyPage(r.Context())
	return &reply{Data: p}, err
}

func (d *Dashboard) policyPage(ctx context.Context) (*policyPage, error) {
	p := &policyPage{Policy: d.site.Policy, Access: d.site.Access, HasKeys: d.site.Keys != nil, Edit: d.edit()}
	if d.site.Server.Current() != nil {
		d.readPublished(ctx, p)
	}
	p.compare()
	if p.Access != nil && p.Access.Bots != nil {
		for _, purpose := range purposes {
			if p.Policy.Refuses(purpose) {
				p.Refuse = append(p.Refuse, refusedPurpose{purpose, slices.DeleteFunc(p.Access.Bots.Crawlers(purpose), p.Policy.Approves)})
			}
		}
	}
	return p, d.listKeys(ctx, p)
}

var purposes = []millrace.Purpose{millrace.Search, millrace.AIInput, millrace.AITrain}

// readPublished reads the policy from each protocol as clients do.
func (d *Dashboard) readPublished(ctx context.Context, p *policyPage) {
	ctx, cancel := context.WithTimeout(ctx, policyTime)
	defer cancel()
	key := ""
	if d.site.Server.Guarded() {
		key = d.site.Key()
	}
	l := newLoop(d.site.Gateway(), key, d.site.EndpointBase)
	defer l.Close()
	for _, proto := range d.site.Protocols {
		var at string
		reader, ok := proto.NewReader(l.client(), d.site.EndpointBase, &protocol.ReaderOptions{
			Policy: func(t protocol.Terms) error { at = t.URL; return nil },
		}).(protocol.PolicyReader)
		if !ok {
			continue // the protocol has no document with a policy
		}
		h := publishedPolicy{Protocol: proto.Name}
		said, err := reader.Policy(ctx)
		switch {
		case err == nil:
			h.Policy = said
		case errors.Is(err, millrace.ErrNotFound):
			if p.Policy == nil {
				continue
			}
			h.Err = "publishes no policy"
		default:
			h.Err = err.Error()
		}
		h.URL = at
		p.Published = append(p.Published, h)
	}
	for _, u := range []string{originOf(d.site.EndpointBase) + "/robots.txt", d.site.EndpointBase + "license.xml"} {
		text, signal := textOf(ctx, l.client(), u)
		if text != "" {
			p.Texts = append(p.Texts, policyText{strings.TrimPrefix(u, originOf(d.site.EndpointBase)), text})
		}
		p.Signal = cmp.Or(p.Signal, signal)
	}
}

// textOf returns the text of a document and the Content-Signal of the response. Both are "" if the
// response is not a 200.
func textOf(ctx context.Context, client *http.Client, at string) (text, signal string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", ""
	}
	resp, err := client.Do(r)
	if err != nil {
		return "", ""
	}
	defer func() { _ = resp.Body.Close() }() // ignore the error, because the body was only read
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxTextShown))
	if err != nil || resp.StatusCode != http.StatusOK {
		return "", ""
	}
	return string(b), resp.Header.Get("Content-Signal")
}

// compare compares the policy with the policies that bots read.
func (p *policyPage) compare() {
	if p.Policy == nil {
		return
	}
	for _, m := range policyMembers {
		f := policyField{Name: m.name, Value: m.value(p.Policy)}
		any := f.Value != ""
		for _, h := range p.Published {
			value := ""
			if h.Policy != nil {
				value = m.value(h.Policy)
			}
			f.Published = append(f.Published, publishedField{h.Protocol, value})
		}
		if any {
			p.Fields = append(p.Fields, f)
		}
	}
}

// policyMembers are the members of a policy, formatted.
var policyMembers = []struct {
	name  string
	value func(*millrace.Policy) string
}{
	{"Search", func(p *millrace.Policy) string { return permission(p, millrace.Search) }},
	{"AI answers", func(p *millrace.Policy) string { return permission(p, millrace.AIInput) }},
	{"AI training", func(p *millrace.Policy) string { return permission(p, millrace.AITrain) }},
	{"Attribution", func(p *millrace.Policy) string { return required(p.Requirements.Attribution) }},
	{"Link back", func(p *millrace.Policy) string { return required(p.Requirements.LinkBack) }},
	{"Notice of commercial use", func(p *millrace.Policy) string { return required(p.Requirements.Notice) }},
	{"Terms", func(p *millrace.Policy) string { return p.Terms }},
	{"Payment", func(p *millrace.Policy) string { return p.Payment }},
	{"Contact", func(p *millrace.Policy) string { return p.Contact }},
	{"Requests per second", func(p *millrace.Policy) string { return number(p.Rate.PerSecond) }},
	{"Requests per day", func(p *millrace.Policy) string { return number(float64(p.Rate.PerDay)) }},
	{"Note on the rate", func(p *millrace.Policy) string { return p.Rate.Note }},
	{"Retention", func(p *millrace.Policy) string {
		if p.Retention == 0 {
			return ""
		}
		return took(p.Retention)
	}},
	{"Access", func(p *millrace.Policy) string { return p.Access }},
	{"Approved consumers", func(p *millrace.Policy) string { return strings.Join(p.Consumers, ", ") }},
	{"Effective since", func(p *millrace.Policy) string { return date(p.Effective) }},
	{"Last changed", func(p *millrace.Policy) string { return date(p.Updated) }},
	{"Revision", func(p *millrace.Policy) string { return number(float64(p.Revision)) }},
}

func permission(p *millrace.Policy, purpose millrace.Purpose) string {
	yes, said := p.Purposes[purpose]
	switch {
	case !said:
		return ""
	case yes:
		return allowed
	}
	return refused
}

func required(yes bool) string {
	if yes {
		return "required"
	}
	return ""
}

func number(n float64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}
