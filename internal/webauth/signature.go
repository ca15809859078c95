package webauth

import (
	"crypto/ed25519"
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"
)

// signature is one signature of a message.
type signature struct {
	label   string
	covered httpsfv.InnerList
	value   []byte
	keyID   string
	nonce   string
	created time.Time // zero if absent
	expires time.Time // zero if absent
}

// Limits of what is parsed. The HTTP server limits the size of the header.
const (
	maxSignatures = 8  // per message
	maxComponents = 32 // per signature
)

const algorithm = "ed25519"

// signatures parses the signatures with a tag in the fields Signature-Input and Signature (RFC
// 9421, section 4). It ignores other signatures, which intermediaries may add, and other
// algorithms.
func signatures(h http.Header, tag string) ([]signature, error) {
	if len(h["Signature-Input"]) == 0 {
		return nil, nil
	}
	inputs, err := httpsfv.UnmarshalDictionary(h["Signature-Input"])
	if err != nil {
		return nil, invalid("4.1", "Signature-Input is not a dictionary: %v", err)
	}
	values, err := httpsfv.UnmarshalDictionary(h["Signature"])
	if err != nil {
		return nil, invalid("4.2", "Signature is not a dictionary: %v", err)
	}
	labels := inputs.Names()
	if len(labels) > maxSignatures {
		return nil, invalid("4.1", "%d signatures, at most %d", len(labels), maxSignatures)
	}
	var out []signature
	for _, label := range labels {
		m, _ := inputs.Get(label)
		list, ok := m.(httpsfv.InnerList)
		if !ok {
			return nil, invalid("4.1", "the member %q of Signature-Input is not a list", label)
		}
		s := signature{label: label, covered: list}
		if s.text("tag") != tag || s.algorithm() != algorithm {
			continue
		}
		if len(list.Items) > maxComponents {
			return nil, invalid("4.1", "the signature %q covers %d components, at most %d", label, len(list.Items), maxComponents)
		}
		if m, ok := values.Get(label); ok {
			if item, ok := m.(httpsfv.Item); ok {
				s.value, _ = item.Value.([]byte)
			}
		}
		if len(s.value) != ed25519.SignatureSize {
			return nil, invalid("4.2", "the signature %q is absent, or not an Ed25519 signature", label)
		}
		s.read()
		out = append(out, s)
	}
	return out, nil
}

// read parses the parameters (RFC 9421, section 2.3). A parameter of the wrong type counts as
// absent.
func (s *signature) read() {
	p := s.covered.Params
	at := func(name string) time.Time {
		v, _ := p.Get(name)
		if n, ok := v.(int64); ok && n > 0 {
			return time.Unix(n, 0)
		}
		return time.Time{}
	}
	s.keyID, s.nonce = s.text("keyid"), s.text("nonce")
	s.created, s.expires = at("created"), at("expires")
}

// text returns a string parameter.
func (s *signature) text(name string) string {
	v, _ := s.covered.Params.Get(name)
	t, _ := v.(string)
	return t
}

// algorithm returns the algorithm, or "ed25519" if it is not named.
func (s *signature) algorithm() string {
	v, ok := s.covered.Params.Get("alg")
	if !ok {
		return algorithm
	}
	name, _ := v.(string)
	return name
}

// covers reports whether a component without parameters is covered. If ofRequest is set, the
// component must have the parameter req.
func (s *signature) covers(name string, ofRequest bool) bool {
	for _, c := range s.covered.Items {
		if c.Value != name {
			continue
		}
		names := c.Params.Names()
		if !ofRequest && len(names) == 0 || ofRequest && len(names) == 1 && names[0] == "req" {
			return true
		}
	}
	return false
}

// verify verifies the signature of a message with a key.
func (s *signature) verify(m *message, key ed25519.PublicKey) error {
	base, err := m.signatureBase(s.covered)
	if err != nil {
		return err
	}
	if !ed25519.Verify(key, base, s.value) {
		return invalid("3.2", "the signature %q is wrong", s.label)
	}
	return nil
}

// components returns an inner list of components without parameters.
func components(names ...string) httpsfv.InnerList {
	list := httpsfv.InnerList{Params: httpsfv.NewParams()}
	for _, n := range names {
		list.Items = append(list.Items, httpsfv.NewItem(n))
	}
	return list
}

// with returns a component with a parameter.
func with(name, param string, value any) httpsfv.Item {
	c := httpsfv.NewItem(name)
	c.Params.Add(param, value)
	return c
}

// signMessage signs a message and returns the fields Signature-Input and Signature for a
// label.
func (k *Key) signMessage(m *message, label string, covered httpsfv.InnerList, created, expires time.Time, tag, nonce string) (input, value string, err error) {
	p := covered.Params
	p.Add("created", created.Unix())
	p.Add("expires", expires.Unix())
	p.Add("keyid", k.id)
	p.Add("alg", algorithm)
	if nonce != "" {
		p.Add("nonce", nonce)
	}
	p.Add("tag", tag)
	base, err := m.signatureBase(covered)
	if err != nil {
		return "", "", err
	}
	inputs, values := httpsfv.NewDictionary(), httpsfv.NewDictionary()
	inputs.Add(label, covered)
	values.Add(label, httpsfv.NewItem(k.sign(base)))
	if input, err = httpsfv.Marshal(inputs); err != nil {
		return "", "", err
	}
	value, err = httpsfv.Marshal(values)
	return input, value, err
}
