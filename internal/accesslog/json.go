package accesslog

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// jsonLine contains the members of a line that are read. Values may be strings or numbers, because
// the formats of servers are configurable.
type jsonLine struct {
	// Caddy has an object in request, and nginx the request line.
	Request  jsontext.Value `json:"request"`
	Stamp    jsontext.Value `json:"ts"`
	Duration jsontext.Value `json:"duration"`
	Size     jsontext.Value `json:"size"`
	Status   jsontext.Value `json:"status"`
	// Cloudflare Logpush, data set http_requests.
	ClientIP     jsontext.Value `json:"ClientIP"`
	ClientHost   jsontext.Value `json:"ClientRequestHost"`
	ClientMethod jsontext.Value `json:"ClientRequestMethod"`
	ClientURI    jsontext.Value `json:"ClientRequestURI"`
	ClientPath   jsontext.Value `json:"ClientRequestPath"`
	ClientAgent  jsontext.Value `json:"ClientRequestUserAgent"`
	EdgeStatus   jsontext.Value `json:"EdgeResponseStatus"`
	EdgeBytes    jsontext.Value `json:"EdgeResponseBytes"`
	EdgeStart    jsontext.Value `json:"EdgeStartTimestamp"`
	OriginMillis jsontext.Value `json:"OriginResponseDurationMs"`
	// Variables of nginx, in a log_format with escape=json.
	RemoteAddr  jsontext.Value `json:"remote_addr"`
	Host        jsontext.Value `json:"host"`
	Method      jsontext.Value `json:"request_method"`
	URI         jsontext.Value `json:"request_uri"`
	Agent       jsontext.Value `json:"http_user_agent"`
	BodySent    jsontext.Value `json:"body_bytes_sent"`
	Sent        jsontext.Value `json:"bytes_sent"`
	TimeISO     jsontext.Value `json:"time_iso8601"`
	TimeLocal   jsontext.Value `json:"time_local"`
	Seconds     jsontext.Value `json:"msec"`
	RequestTime jsontext.Value `json:"request_time"`
}

// caddyRequest is the value of the member "request" in Caddy's logs.
type caddyRequest struct {
	ClientIP   jsontext.Value `json:"client_ip"`
	RemoteIP   jsontext.Value `json:"remote_ip"`
	RemoteAddr jsontext.Value `json:"remote_addr"` // with port; before Caddy 2.5
	Method     jsontext.Value `json:"method"`
	Host       jsontext.Value `json:"host"`
	URI        jsontext.Value `json:"uri"`
	Headers    struct {
		Agent []jsontext.Value `json:"User-Agent"`
	} `json:"headers"`
}

// jsonParser parses lines of JSON. It reuses its memory.
type jsonParser struct {
	line    jsonLine
	request caddyRequest
	text    []byte // unquoted strings of the line
}

var lax = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// parse parses a line. requestLine splits a request line.
func (p *jsonParser) parse(b []byte, l *Line, requestLine func([]byte, *Line)) bool {
	j, r := &p.line, &p.request
	*j, *r, p.text = jsonLine{}, caddyRequest{}, p.text[:0]
	if json.Unmarshal(b, j, lax) != nil {
		return false
	}
	agent := first(j.ClientAgent, j.Agent)
	switch {
	case j.Request == nil:
	case j.Request.Kind() == '{':
		if json.Unmarshal(j.Request, r, lax) != nil {
			return false
		}
		if len(r.Headers.Agent) > 0 {
			agent = r.Headers.Agent[0]
		}
	default:
		requestLine(p.string(j.Request), l)
	}
	status, ok := number(p.string(first(j.EdgeStatus, j.Status)))
	if !ok || status < 0 || status > 999 {
		return false
	}
	l.Status = int(status)
	if l.Time, ok = stamp(p.string(first(j.EdgeStart, j.Stamp, j.TimeISO, j.TimeLocal, j.Seconds))); !ok {
		return false
	}
	if size, ok := number(p.string(first(j.EdgeBytes, j.Size, j.BodySent, j.Sent))); ok && size > 0 && size < 1<<50 {
		l.Bytes = int64(size)
	}
	l.Address = p.string(first(j.ClientIP, r.ClientIP, r.RemoteIP, r.RemoteAddr, j.RemoteAddr))
	l.Host, l.Agent = p.string(first(j.ClientHost, r.Host, j.Host)), p.string(agent)
	l.Method = orBytes(p.string(first(j.ClientMethod, r.Method, j.Method)), l.Method)
	l.Target = orBytes(origin(p.string(first(j.ClientURI, r.URI, j.URI, j.ClientPath))), l.Target)
	for _, d := range []struct {
		value jsontext.Value
		unit  time.Duration // unit of a number
	}{{j.OriginMillis, time.Millisecond}, {j.Duration, time.Second}, {j.RequestTime, time.Second}} {
		text := p.string(d.value)
		if n, ok := number(text); ok && n >= 0 && n < float64(maxSeconds*time.Second/d.unit) {
			l.Duration = time.Duration(n * float64(d.unit))
		} else if took, err := time.ParseDuration(string(text)); err == nil && took >= 0 {
			l.Duration = took
		}
	}
	return l.Target != nil || l.Address != nil
}

// first returns the first value that is present.
func first(values ...jsontext.Value) jsontext.Value {
	for _, v := range values {
		if len(v) > 0 && v.Kind() != 'n' {
			return v
		}
	}
	return nil
}

func orBytes(a, b []byte) []byte {
	if len(a) > 0 {
		return a
	}
	return b
}

// string returns the text of a string or number, or nil for other values.
func (p *jsonParser) string(v jsontext.Value) []byte {
	switch v.Kind() {
	case '0':
		return v
	case '"':
		if bytes.IndexByte(v, '\\') < 0 {
			return v[1 : len(v)-1]
		}
		at := len(p.text)
		p.text, _ = jsontext.AppendUnquote(p.text, v) // replaces invalid UTF-8
		return p.text[at:]
	}
	return nil
}

func number(b []byte) (float64, bool) {
	n, err := strconv.ParseFloat(string(b), 64)
	return n, err == nil && !math.IsNaN(n)
}

// stamp parses a time: a number of seconds, milliseconds, microseconds or nanoseconds since 1970,
// distinguished by its size, or a text in one of the formats that servers write.
func stamp(b []byte) (time.Time, bool) {
	if n, ok := number(b); ok {
		if n < 0 || n > 9e18 {
			return time.Time{}, false
		}
		unit := float64(time.Second)
		for n*unit > 1e10*float64(time.Second) && unit > 1 {
			unit /= 1000
		}
		t := time.Unix(0, int64(n*unit)).UTC()
		return t, plausible(t)
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05.999Z0700", "02/Jan/2006:15:04:05 -0700", "2006/01/02 15:04:05"} {
		if t, err := time.Parse(layout, string(b)); err == nil {
			return t.UTC(), plausible(t)
		}
	}
	return time.Time{}, false
}
