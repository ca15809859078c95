package webauth

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/millrace/millrace"
)

// message contains the parts of a request or a response that a signature can cover.
type message struct {
	method string
	base   string // scheme and authority of the target, such as "https://example.com"
	target string // path and query as sent
	field  http.Header
	host   string   // value of the Host field
	status int      // status of a response; 0 for a request
	req    *message // the request of a response
}

// requestMessage returns the message of a request received at base. If base is empty, it is
// the message of a request to be sent to its URL.
func requestMessage(r *http.Request, base string) *message {
	if base == "" {
		base = r.URL.Scheme + "://" + r.URL.Host
	}
	m := &message{method: r.Method, base: normalBase(base), target: r.URL.RequestURI(), field: r.Header, host: r.Host}
	if m.method == "" {
		m.method = http.MethodGet
	}
	switch {
	case strings.HasPrefix(r.RequestURI, "/"):
		m.target = r.RequestURI // URL encodes characters such as | differently
	case r.URL.Host != "":
		// Omit Opaque: RequestURI of an opaque URL is not its path and query.
		u := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}
		m.target = u.RequestURI()
	}
	return m
}

// normalBase returns scheme and authority in the form of RFC 9421, section 2.2.3: in lower
// case, without a default port.
func normalBase(base string) string {
	base = strings.ToLower(base)
	for scheme, port := range map[string]string{"http://": ":80", "https://": ":443"} {
		if strings.HasPrefix(base, scheme) {
			base = strings.TrimSuffix(base, port)
		}
	}
	return base
}

// invalid returns an error that names a section of RFC 9421.
func invalid(section, format string, args ...any) error {
	return millrace.Coded("rfc9421/"+section, fmt.Errorf("%w: %s (RFC 9421, section %s)", millrace.ErrInvalid, fmt.Sprintf(format, args...), section))
}

// signatureBase returns the bytes to sign (RFC 9421, section 2.5).
func (m *message) signatureBase(covered httpsfv.InnerList) ([]byte, error) {
	var b strings.Builder
	seen := make(map[string]bool, len(covered.Items))
	for _, c := range covered.Items {
		name, ok := c.Value.(string)
		if !ok {
			return nil, invalid("2", "invalid component name %v, want a string", c.Value)
		}
		id, err := httpsfv.Marshal(c)
		if err != nil {
			return nil, invalid("2", "invalid component name")
		}
		if seen[id] {
			return nil, invalid("2.5", "duplicate component %s", id)
		}
		seen[id] = true
		value, err := m.component(name, c.Params)
		if err != nil {
			return nil, err
		}
		b.WriteString(id)
		b.WriteString(": ")
		b.WriteString(value)
		b.WriteByte('\n')
	}
	params, err := httpsfv.Marshal(covered)
	if err != nil {
		return nil, invalid("2.3", "invalid parameters of a signature")
	}
	b.WriteString(`"@signature-params": `)
	b.WriteString(params)
	return []byte(b.String()), nil
}

// component returns the value of one component.
func (m *message) component(name string, params *httpsfv.Params) (string, error) {
	var key string
	var hasKey, ofRequest bool
	for _, p := range params.Names() {
		v, _ := params.Get(p)
		text, isText := v.(string)
		switch {
		case p == "req" && v == true:
			ofRequest = true
		case p == "key" && isText && !strings.HasPrefix(name, "@"):
			key, hasKey = text, true
		default:
			return "", invalid("2.1", "unknown parameter %s of the component %q", p, name)
		}
	}
	if ofRequest {
		if m.req == nil {
			return "", invalid("2.4", "the signature of a response without a request covers the component %q of a request", name)
		}
		m = m.req
	}
	switch {
	case strings.HasPrefix(name, "@"):
		return m.derived(name)
	case name != strings.ToLower(name):
		return "", invalid("2.1", "the field %q is not in lower case", name)
	case hasKey:
		return m.member(name, key)
	}
	return m.fieldValue(name)
}

// derived returns a derived component (RFC 9421, section 2.2).
func (m *message) derived(name string) (string, error) {
	path, query, hasQuery := strings.Cut(m.target, "?")
	if name == "@status" {
		if m.status == 0 {
			return "", invalid("2.2.9", "a request has no @status")
		}
		return strconv.Itoa(m.status), nil
	}
	if m.status != 0 {
		return "", invalid("2.2", "a response has no %s except with the parameter req", name)
	}
	scheme, authority, _ := strings.Cut(m.base, "://")
	switch name {
	case "@method":
		return m.method, nil
	case "@authority":
		return authority, nil
	case "@scheme":
		return scheme, nil
	case "@target-uri":
		return m.base + m.target, nil
	case "@request-target":
		return m.target, nil
	case "@path":
		return path, nil
	case "@query":
		if !hasQuery {
			return "?", nil
		}
		return "?" + query, nil
	}
	return "", invalid("2.2", "unknown component %s", name)
}

// fieldValue returns the value of a field (RFC 9421, section 2.1).
func (m *message) fieldValue(name string) (string, error) {
	values := m.field[http.CanonicalHeaderKey(name)]
	if name == "host" && m.host != "" {
		values = []string{m.host}
	}
	if len(values) == 0 {
		return "", invalid("2.1", "the covered field %s is missing", name)
	}
	if len(values) == 1 {
		return strings.Trim(values[0], " \t"), nil
	}
	trimmed := make([]string, len(values))
	for i, v := range values {
		trimmed[i] = strings.Trim(v, " \t")
	}
	return strings.Join(trimmed, ", "), nil
}

// member returns a member of a dictionary field (RFC 9421, section 2.1.2).
func (m *message) member(name, key string) (string, error) {
	dict, err := httpsfv.UnmarshalDictionary(m.field[http.CanonicalHeaderKey(name)])
	if err != nil {
		return "", invalid("2.1.2", "the field %s is not a dictionary", name)
	}
	v, ok := dict.Get(key)
	if !ok {
		return "", invalid("2.1.2", "the covered member %q of the field %s is missing", key, name)
	}
	text, err := httpsfv.Marshal(v)
	if err != nil {
		return "", invalid("2.1.2", "invalid member %q of the field %s", key, name)
	}
	return text, nil
}
