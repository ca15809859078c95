package policy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// Names of the header fields. The records of robots.txt have the same names.
const (
	fieldSignal = "Content-Signal"
	fieldUsage  = "Content-Usage"
)

// purposes contains the purposes in the order in which they are written. The name of a purpose is
// also its word in Content-Signal. usage is its word in Content-Usage (draft-ietf-aipref-vocab-08,
// section 4).
var purposes = []struct {
	purpose millrace.Purpose
	usage   string
}{{millrace.Search, "search"}, {millrace.AIInput, "ai-use"}, {millrace.AITrain, "train-ai"}}

// Header writes a policy as header fields. A nil Header writes nothing. Header is safe for
// concurrent use.
type Header struct {
	says          preferences
	signal, usage []string // values of Content-Signal and Content-Usage
}

// NewHeader returns the header fields of a policy, or nil if it names no purpose.
func NewHeader(p *millrace.Policy) *Header {
	if p == nil || len(p.Purposes) == 0 {
		return nil
	}
	h := &Header{says: p.Purposes}
	signal, usage := h.says.fieldValues()
	h.signal, h.usage = []string{signal}, []string{usage}
	return h
}

// Write sets Content-Signal and Content-Usage of a response. If the response already has stricter
// preferences, Write keeps them.
func (h *Header) Write(to http.Header) {
	if h == nil {
		return
	}
	if to[fieldSignal] == nil && to[fieldUsage] == nil {
		to[fieldSignal], to[fieldUsage] = h.signal, h.usage
		return
	}
	signal, usage := h.says.merge(ReadHeader(to).Purposes).fieldValues()
	to[fieldSignal], to[fieldUsage] = []string{signal}, []string{usage + unknown(to[fieldUsage]...)}
}

// ReadHeader returns the policy in Content-Signal and Content-Usage of a response.
func ReadHeader(h http.Header) *millrace.Policy {
	return &millrace.Policy{Purposes: ReadSignals(slices.Concat(h[fieldSignal], h[fieldUsage])...)}
}

// preferences maps a purpose to true if it is allowed, and to false if it is refused.
type preferences map[millrace.Purpose]bool

// ReadSignals reads values of Content-Signal and Content-Usage, such as "search=yes, ai-train=no"
// or "train-ai=n". It returns nil if they contain no preference. A refusal takes precedence over a
// permission. A robots.txt value that begins with a path is ignored, because it applies only to a
// part of the site.
func ReadSignals(values ...string) map[millrace.Purpose]bool {
	var p preferences
	for _, value := range values {
		if strings.HasPrefix(value, "/") {
			continue
		}
		for pref := range strings.SplitSeq(strings.ToLower(value), ",") {
			name, value, _ := strings.Cut(pref, "=")
			value, _, _ = strings.Cut(value, ";") // drop parameters
			name, value = strings.TrimSpace(name), strings.TrimSpace(value)
			no := value == "no" || value == "n"
			for _, w := range purposes {
				if (name == string(w.purpose) || name == w.usage) && (no || value == "yes" || value == "y") {
					p = p.merge(preferences{w.purpose: !no})
				}
			}
		}
	}
	return p
}

// merge combines two sets of preferences. A refusal takes precedence over a permission.
func (p preferences) merge(o preferences) preferences {
	if len(o) == 0 {
		return p
	}
	both := make(preferences)
	for _, from := range []preferences{p, o} {
		for purpose, yes := range from {
			was, stated := both[purpose]
			both[purpose] = yes && (was || !stated)
		}
	}
	return both
}

// fieldValues returns the values of Content-Signal and Content-Usage.
func (p preferences) fieldValues() (signal, usage string) {
	var s, u []string
	for _, w := range purposes {
		if yes, stated := p[w.purpose]; stated && yes {
			s, u = append(s, string(w.purpose)+"=yes"), append(u, w.usage+"=y")
		} else if stated {
			s, u = append(s, string(w.purpose)+"=no"), append(u, w.usage+"=n")
		}
	}
	return strings.Join(s, ", "), strings.Join(u, ", ")
}

// unknown returns those preferences in values of Content-Usage that belong to no known purpose.
func unknown(lists ...string) string {
	var b strings.Builder
	for pref := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		pref = strings.TrimSpace(pref)
		name, _, _ := strings.Cut(pref, "=")
		known := false
		for _, w := range purposes {
			known = known || strings.EqualFold(name, w.usage) || strings.EqualFold(name, string(w.purpose))
		}
		if pref != "" && !known {
			b.WriteString(", " + pref)
		}
	}
	return b.String()
}
