package accesslog

import (
	"bytes"
	"net/netip"
	"time"
)

// Line is one request in a log. Its byte slices are valid until the next line is read.
type Line struct {
	Address  []byte // address or host name of the client
	Host     []byte // name of the site, or nil if unknown
	Method   []byte // If nil, the request was malformed.
	Target   []byte // path and query. If nil, the request was malformed.
	Agent    []byte // User-Agent, or nil if it is absent or not logged
	Time     time.Time
	Status   int
	Bytes    int64         // bytes of the body on the wire
	Duration time.Duration // time until the response was sent; below 0 = unknown
}

// Path returns the path of the target.
func (l *Line) Path() []byte {
	path, _, _ := bytes.Cut(l.Target, []byte{'?'})
	return path
}

// Parser parses lines. Its zero value works. It is not safe for concurrent use.
type Parser struct {
	// Unit is the unit of an integer at the end of a line in the combined or common format, such as
	// time.Microsecond for %D of Apache. If 0, such an integer is ignored, since it may not be a
	// duration. Decimal numbers of nginx are always read.
	Unit time.Duration

	stamp     []byte // text of the last parsed time
	stampTime time.Time
	json      jsonParser
}

// Parse parses a line without its newline, and reports whether it is a request.
func (p *Parser) Parse(b []byte, l *Line) bool {
	*l = Line{Duration: -1}
	b = bytes.TrimRight(b, "\r")
	if len(b) > 0 && b[0] == '{' {
		return p.json.parse(b, l, p.requestLine)
	}
	return p.combined(b, l)
}

// combined parses the combined and the common format:
//
//	ADDRESS IDENT USER [TIME] "REQUEST" STATUS BYTES "REFERER" "AGENT" …
//
// Anything may precede the address, such as the fields of syslog. If there is only one such field,
// it is the host.
func (p *Parser) combined(b []byte, l *Line) bool {
	head, rest, ok := bytes.Cut(b, []byte(" ["))
	if !ok {
		return false
	}
	stamp, rest, ok := bytes.Cut(rest, []byte(`] "`))
	if !ok || !p.time(stamp, l) {
		return false
	}
	request, rest, ok := quoted(rest)
	if !ok {
		return false
	}
	status, rest := word(rest)
	size, rest := word(rest)
	var n int64
	if n, ok = digits(status); !ok || len(status) != 3 {
		return false
	}
	l.Status = int(n)
	if l.Bytes, ok = digits(size); !ok && string(size) != "-" {
		return false
	}
	p.client(head, l)
	p.requestLine(request, l)
	if len(rest) > 1 && rest[0] == ' ' && rest[1] == '"' {
		var agent []byte
		_, rest, ok = quoted(rest[2:]) // the referer
		if ok && len(rest) > 1 && rest[0] == ' ' && rest[1] == '"' {
			agent, rest, ok = quoted(rest[2:])
		}
		if !ok {
			return false
		}
		if string(agent) != "-" {
			l.Agent = agent
		}
	}
	p.took(rest, l)
	return true
}

// client sets the address and the host from the text before the time.
func (p *Parser) client(head []byte, l *Line) {
	var fields [5][]byte // the last fields, in reverse order
	n := 0
	for n < len(fields) && len(head) > 0 {
		i := bytes.LastIndexByte(head, ' ')
		if fields[n] = head[i+1:]; len(fields[n]) > 0 {
			n++
		}
		head = head[:max(i, 0)]
	}
	if n < 3 {
		l.Address = fields[max(n, 1)-1]
		return
	}
	l.Address = fields[2]
	if n != 4 {
		return
	}
	if _, err := netip.ParseAddr(string(fields[3])); err == nil {
		l.Address = fields[3] // the name of the user contains a space
		return
	}
	l.Host = fields[3]
}

// requestLine sets the method and the target from a request line.
func (p *Parser) requestLine(b []byte, l *Line) {
	method, rest, ok := bytes.Cut(b, []byte{' '})
	if !ok {
		return
	}
	target := rest
	if i := bytes.LastIndex(rest, []byte(" HTTP/")); i >= 0 {
		target = rest[:i]
	}
	l.Method, l.Target = method, origin(target)
}

// origin returns the path and query of a target, which may be a whole URL.
func origin(target []byte) []byte {
	if _, rest, ok := bytes.Cut(target, []byte("://")); ok && len(target) > 0 && target[0] != '/' {
		i := bytes.IndexByte(rest, '/')
		if i < 0 {
			return []byte{'/'}
		}
		return rest[i:]
	}
	return target
}

// took sets the duration from the fields after the user agent. It uses the largest decimal number
// with three or six digits after the point, such as 0.123, else a single integer in the configured
// unit.
func (p *Parser) took(b []byte, l *Line) {
	var integers int
	var last int64
	for len(b) > 0 {
		var f []byte
		if f, b = word(b); len(f) == 0 {
			b = b[min(1, len(b)):]
			continue
		}
		if f[0] == '"' && bytes.IndexByte(f[1:], '"') < 0 {
			i := bytes.IndexByte(b, '"') // a quoted field with spaces
			if i < 0 {
				return
			}
			b = b[i+1:]
			continue
		}
		if i := bytes.IndexByte(f, '='); i >= 0 {
			f = f[i+1:]
		}
		f = bytes.Trim(f, `"`)
		whole, part, decimal := bytes.Cut(f, []byte{'.'})
		n, ok := digits(whole)
		if !ok {
			continue
		}
		if !decimal {
			integers, last = integers+1, n
			continue
		}
		if m, ok := digits(part); ok && (len(part) == 3 || len(part) == 6) && n < maxSeconds {
			unit := time.Millisecond
			if len(part) == 6 {
				unit = time.Microsecond
			}
			l.Duration = max(l.Duration, time.Duration(n)*time.Second+time.Duration(m)*unit)
		}
	}
	if l.Duration < 0 && integers == 1 && p.Unit > 0 && last < int64(maxSeconds*time.Second/p.Unit) {
		l.Duration = time.Duration(last) * p.Unit
	}
}

// maxSeconds is the maximum duration of a request in seconds. A larger number has another meaning.
const maxSeconds = 7 * 24 * 3600

// time parses a time, such as 10/Oct/2000:13:55:36 -0700.
func (p *Parser) time(b []byte, l *Line) bool {
	if len(b) != len("02/Jan/2006:15:04:05 -0700") {
		return false
	}
	if !bytes.Equal(b, p.stamp) {
		t, err := time.Parse("02/Jan/2006:15:04:05 -0700", string(b))
		if err != nil || !plausible(t) {
			return false
		}
		p.stamp, p.stampTime = append(p.stamp[:0], b...), t.UTC()
	}
	l.Time = p.stampTime
	return true
}

// plausible reports whether a request may have happened at a time. An implausible time would make
// a report cover many years.
func plausible(t time.Time) bool { return t.Year() >= 1995 && t.Year() < 2100 }

// quoted returns the text up to the next unescaped quote, and the rest after the quote.
func quoted(b []byte) (text, rest []byte, ok bool) {
	for i := 0; i < len(b); i++ {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			break
		}
		i += j
		escapes := 0
		for escapes < i && b[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return b[:i], b[i+1:], true
		}
	}
	return nil, nil, false
}

// word returns the text between one space and the next, and the rest.
func word(b []byte) (text, rest []byte) {
	if len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	if i := bytes.IndexByte(b, ' '); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

// digits parses a number of at most 18 digits.
func digits(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
