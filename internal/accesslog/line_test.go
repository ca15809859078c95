package accesslog

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// show formats a line for comparison.
func show(l *Line) string {
	took := "-"
	if l.Duration >= 0 {
		took = l.Duration.String()
	}
	return fmt.Sprintf("%s|%s|%s %s|%d|%d|%s|%s|%s", l.Address, l.Host, l.Method, l.Target, l.Status, l.Bytes, l.Agent, took, l.Time.Format(time.RFC3339))
}

func TestParse(t *testing.T) {
	t.Parallel()
	const at, utc = `[10/Oct/2026:13:55:36 -0700]`, "2026-10-10T20:55:36Z"
	for _, c := range []struct {
		name, line, want string
		unit             time.Duration
	}{
		{
			name: "combined", line: `192.0.2.7 - - ` + at + ` "GET /a?b=c HTTP/1.1" 200 2326 "https://example.com/" "GPTBot/1.2"`,
			want: `192.0.2.7||GET /a?b=c|200|2326|GPTBot/1.2|-|` + utc,
		},
		{name: "common", line: `192.0.2.7 - frank ` + at + ` "GET / HTTP/1.0" 304 -`, want: `192.0.2.7||GET /|304|0||-|` + utc},
		{name: "CR", line: `192.0.2.7 - - ` + at + ` "GET / HTTP/1.0" 304 0` + "\r", want: `192.0.2.7||GET /|304|0||-|` + utc},
		{name: "our own", line: `2001:db8::1 - - ` + at + ` "GET /llms.txt HTTP/1.1" 200 5 0.000042`, want: `2001:db8::1||GET /llms.txt|200|5||42µs|` + utc},
		{
			name: "virtual host", line: `www.example.com:443 192.0.2.7 - - ` + at + ` "GET / HTTP/1.1" 200 1 "-" "-"`,
			want: `192.0.2.7|www.example.com:443|GET /|200|1||-|` + utc,
		},
		{name: "user with a space", line: `192.0.2.7 - john doe ` + at + ` "GET / HTTP/1.1" 200 1 "-" "-"`, want: `192.0.2.7||GET /|200|1||-|` + utc},
		{name: "syslog", line: `Oct 10 13:55:36 web nginx: 192.0.2.7 - - ` + at + ` "GET / HTTP/1.1" 200 1 "-" "a"`, want: `192.0.2.7||GET /|200|1|a|-|` + utc},
		{name: "compose", line: `web-1  | 192.0.2.7 - - ` + at + ` "GET / HTTP/1.1" 200 1 "-" "a"`, want: `192.0.2.7||GET /|200|1|a|-|` + utc},
		{name: "quotes", line: `h - - ` + at + ` "GET /\"x\" HTTP/1.1" 404 1 "\\" "a \"b\" c"`, want: `h||GET /\"x\"|404|1|a \"b\" c|-|` + utc},
		{name: "no request", line: `192.0.2.7 - - ` + at + ` "-" 408 0 "-" "-"`, want: `192.0.2.7|| |408|0||-|` + utc},
		{name: "TLS", line: `192.0.2.7 - - ` + at + ` "\x16\x03\x01" 400 150 "-" "-"`, want: `192.0.2.7|| |400|150||-|` + utc},
		{name: "whole URL", line: `192.0.2.7 - - ` + at + ` "GET https://example.com/a?u=x://y HTTP/1.1" 200 1 "-" "-"`, want: `192.0.2.7||GET /a?u=x://y|200|1||-|` + utc},
		{name: "URL in the path", line: `192.0.2.7 - - ` + at + ` "GET /go/https://example.com/ HTTP/1.1" 200 1 "-" "-"`, want: `192.0.2.7||GET /go/https://example.com/|200|1||-|` + utc},
		{name: "nginx times", line: `192.0.2.7 - - ` + at + ` "GET / HTTP/1.1" 200 1 "-" "-" 0.120 0.118 .`, want: `192.0.2.7||GET /|200|1||120ms|` + utc},
		{name: "named time", line: `192.0.2.7 - - ` + at + ` "GET / HTTP/1.1" 200 1 "-" "-" "1.2.3.4, 5.6.7.8" rt=1.500 uct="0.000" urt="-"`, want: `192.0.2.7||GET /|200|1||1.5s|` + utc},
		{name: "a gzip ratio is not a duration", line: `192.0.2.7 - - ` + at + ` "GET / HTTP/1.1" 200 1 "-" "-" "3.22"`, want: `192.0.2.7||GET /|200|1||-|` + utc},
		{name: "an integer may be anything", line: `192.0.2.7 - - ` + at + ` "GET / HTTP/1.1" 200 1 "-" "-" 1234`, want: `192.0.2.7||GET /|200|1||-|` + utc},
		{name: "%D", unit: time.Microsecond, line: `192.0.2.7 - - ` + at + ` "GET / HTTP/1.1" 200 1 "-" "-" 1234`, want: `192.0.2.7||GET /|200|1||1.234ms|` + utc},
		{name: "%I %O", unit: time.Microsecond, line: `192.0.2.7 - - ` + at + ` "GET / HTTP/1.1" 200 1 "-" "-" 12 34`, want: `192.0.2.7||GET /|200|1||-|` + utc},

		{
			name: "Caddy", line: `{"level":"info","ts":1791665736.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"4","client_ip":"192.0.2.7","proto":"HTTP/2.0","method":"GET","host":"example.com","uri":"/a?b=\"c\"","headers":{"User-Agent":["GPTBot/1.2"],"Accept":["*/*"]},"tls":{"resumed":false}},"bytes_read":0,"user_id":"","duration":0.0015,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}`,
			want: `192.0.2.7|example.com|GET /a?b="c"|200|10900|GPTBot/1.2|1.5ms|2026-10-10T20:55:36Z`,
		},
		{
			name: "old Caddy", line: `{"ts":"2026-10-10T13:55:36.000-0700","request":{"remote_addr":"192.0.2.7:4","method":"GET","uri":"/","headers":{}},"duration":"1.5ms","size":1,"status":304}`,
			want: `192.0.2.7:4||GET /|304|1||1.5ms|` + utc,
		},
		{
			name: "Cloudflare", line: `{"ClientIP":"192.0.2.7","ClientRequestHost":"example.com","ClientRequestMethod":"GET","ClientRequestURI":"/a?b","ClientRequestUserAgent":"GPTBot","EdgeResponseStatus":200,"EdgeResponseBytes":512,"EdgeStartTimestamp":"2026-10-10T20:55:36Z","EdgeEndTimestamp":"2026-10-10T20:55:37Z","OriginResponseDurationMs":25,"RayID":"x"}`,
			want: `192.0.2.7|example.com|GET /a?b|200|512|GPTBot|25ms|` + utc,
		},
		{
			name: "Cloudflare, nanoseconds", line: `{"ClientIP":"192.0.2.7","ClientRequestURI":"/","EdgeResponseStatus":200,"EdgeResponseBytes":512,"EdgeStartTimestamp":1791665736000000000}`,
			want: `192.0.2.7|| /|200|512||-|` + utc,
		},
		{
			name: "nginx JSON", line: `{"time_iso8601":"2026-10-10T13:55:36-07:00","remote_addr":"192.0.2.7","request":"GET /a HTTP/1.1","status":"200","body_bytes_sent":"7","request_time":"0.250","http_user_agent":"GPTBot"}`,
			want: `192.0.2.7||GET /a|200|7|GPTBot|250ms|` + utc,
		},
		{
			name: "nginx JSON, milliseconds since 1970", line: `{"msec":"1791665736.000","remote_addr":"192.0.2.7","request_method":"GET","request_uri":"/a","status":200,"bytes_sent":7}`,
			want: `192.0.2.7||GET /a|200|7||-|` + utc,
		},
	} {
		p := Parser{Unit: c.unit}
		var l Line
		switch ok := p.Parse([]byte(c.line), &l); {
		case !ok:
			t.Errorf("%s: not read: %s", c.name, c.line)
		case show(&l) != c.want:
			t.Errorf("%s:\n got %s\nwant %s", c.name, show(&l), c.want)
		}
	}
}

// Lines in other formats are not requests.
func TestParseOthers(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "{", "{}", "[]", "{\"ts\":1}", "\x00\xff\xfe", "hello [world]", strings.Repeat("[", 100),
		`192.0.2.7 - - [10/Foo/2026:13:55:36 -0700] "GET / HTTP/1.1" 200 1 "-" "-"`,
		`192.0.2.7 - - [10/Oct/1066:13:55:36 -0700] "GET / HTTP/1.1" 200 1 "-" "-"`,
		`192.0.2.7 - - [10/Oct/2026:13:55:36 -0700] "GET / HTTP/1.1" two 1 "-" "-"`,
		`192.0.2.7 - - [10/Oct/2026:13:55:36 -0700] "GET / HTTP/1.1" 200 1 "-" "cut`,
		`192.0.2.7 - - [10/Oct/2026:13:55:36 -0700] "GET /`,
		`2026/10/10 13:55:36 [error] 7#7: *1 open() "/x" failed (2: No such file or directory), client: 192.0.2.7`,
		`{"level":"error","ts":1791665736.5,"msg":"aborting with incomplete response"}`,
		`{"ts":1e300,"status":200,"request":{"uri":"/","remote_ip":"a"}}`,
		`{"ts":1791665736,"status":1e9,"request":{"uri":"/","remote_ip":"a"}}`,
		`{"ts":1791665736,"status":200,"request":{"uri":["/"]}}`,
		`{"ts":1791665736,"status":200,"request":` + strings.Repeat(`{"a":`, 20000),
	} {
		var p Parser
		if l := new(Line); p.Parse([]byte(line), l) {
			t.Errorf("%.80q: %s", line, show(l))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`a:1 192.0.2.7 - - [10/Oct/2026:13:55:36 -0700] "GET /\"a HTTP/1.1" 200 1 "-" "GPTBot" rt=0.123 "a b" 7`))
	f.Add([]byte(`{"ts":1791665736.5,"request":{"client_ip":"::1","method":"GET","host":"h","uri":"/\u0061","headers":{"User-Agent":["b"]}},"duration":1,"size":1,"status":200}`))
	f.Add([]byte(`{"ClientIP":"1.2.3.4","EdgeStartTimestamp":1,"EdgeResponseStatus":"0","request":"GET x://","request_time":"-1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := string(b)
		p := Parser{Unit: time.Second}
		var l, again Line
		ok := p.Parse(b, &l)
		if string(b) != before {
			t.Fatal("the line was changed")
		}
		text := show(&l)
		if ok && (l.Status < 0 || l.Status > 999 || l.Bytes < 0 || l.Duration < -1 || !plausible(l.Time)) {
			t.Fatal(text)
		}
		if p.Parse(b, &again) != ok || ok && show(&again) != text {
			t.Fatalf("%s, then %s", text, show(&again))
		}
	})
}
