package webauth

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// agentField is the header field that names an agent's key directory.
const agentField = "Signature-Agent"

// agent is the signer that a request claims.
type agent struct {
	directory string // URL of its key directory
	name      string // identity once the signature is verified; see the package comment
}

// parseAgent parses the URL of a directory. plain allows http.
func parseAgent(raw string, plain bool) (agent, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return agent{}, millrace.Coded("agent-url", fmt.Errorf("%w: Signature-Agent: %q is not an absolute URL", millrace.ErrInvalid, clip(raw)))
	case u.User != nil:
		return agent{}, fmt.Errorf("%w: Signature-Agent has a user name or password", millrace.Coded("agent-credentials", millrace.ErrInvalid))
	case u.Scheme != "https" && !(plain && u.Scheme == "http"):
		return agent{}, millrace.Coded("agent-scheme", fmt.Errorf("%w: Signature-Agent: %q is not an https URL", millrace.ErrInvalid, clip(raw)))
	}
	if (u.Path == "" || u.Path == "/") && u.RawQuery == "" {
		u.Path, u.RawPath = DirectoryPath, ""
	}
	u.Fragment, u.RawFragment = "", ""
	full, err := canon.URL(u.String())
	if err != nil {
		return agent{}, fmt.Errorf("%w: Signature-Agent: %w", millrace.ErrInvalid, err)
	}
	// Remove the query, because otherwise one directory would have a name for each query.
	id, _, _ := strings.Cut(full, "?")
	a := agent{directory: full, name: id}
	origin := canon.Origin(full)
	if id == origin+DirectoryPath {
		_, a.name, _ = strings.Cut(origin, "://")
	}
	return a, nil
}

// clip shortens a received value for an error text.
func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

// agentOf returns the agent of a signature: the member of Signature-Agent that the signature
// covers, or the whole field in its first form.
func (s *signature) agentOf(h http.Header, plain bool) (agent, error) {
	values := h[agentField]
	if len(values) == 0 {
		return agent{}, fmt.Errorf("%w: missing Signature-Agent", millrace.Coded("no-agent", millrace.ErrInvalid))
	}
	if strings.HasPrefix(strings.TrimLeft(values[0], " "), `"`) {
		item, err := httpsfv.UnmarshalItem(values)
		text, ok := item.Value.(string)
		if err != nil || !ok {
			return agent{}, fmt.Errorf("%w: Signature-Agent is neither a dictionary nor a string", millrace.Coded("agent-form", millrace.ErrInvalid))
		}
		if !s.covers("signature-agent", false) {
			return agent{}, millrace.Coded("agent-cover", fmt.Errorf("%w: the signature %q does not cover signature-agent", millrace.ErrInvalid, clip(s.label)))
		}
		return parseAgent(text, plain)
	}
	dict, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return agent{}, fmt.Errorf("%w: Signature-Agent is neither a dictionary nor a string", millrace.Coded("agent-form", millrace.ErrInvalid))
	}
	key, ok := s.agentKey(dict)
	if !ok {
		return agent{}, millrace.Coded("agent-cover", fmt.Errorf("%w: the signature %q covers no member of Signature-Agent", millrace.ErrInvalid, clip(s.label)))
	}
	m, _ := dict.Get(key)
	item, _ := m.(httpsfv.Item)
	text, ok := item.Value.(string)
	switch {
	case !ok:
		return agent{}, millrace.Coded("agent-form", fmt.Errorf("%w: the member %q of Signature-Agent is not a string", millrace.ErrInvalid, clip(key)))
	case len(item.Params.Names()) > 0:
		return agent{}, millrace.Coded("agent-form", fmt.Errorf("%w: the member %q of Signature-Agent has parameters", millrace.ErrInvalid, clip(key)))
	}
	return parseAgent(text, plain)
}

// agentKey returns the key of the Signature-Agent member that belongs to a signature: the one
// with the signature's label if covered, else the only covered one.
func (s *signature) agentKey(dict *httpsfv.Dictionary) (key string, ok bool) {
	var covered []string
	for _, c := range s.covered.Items {
		if c.Value != "signature-agent" {
			continue
		}
		v, has := c.Params.Get("key")
		text, isText := v.(string)
		switch {
		case has && isText:
			if text == s.label {
				return text, true
			}
			covered = append(covered, text)
		case len(c.Params.Names()) == 0: // the whole field
			if _, is := dict.Get(s.label); is {
				return s.label, true
			}
			covered = append(covered, dict.Names()...)
		}
	}
	if len(covered) != 1 {
		return "", false
	}
	return covered[0], true
}
