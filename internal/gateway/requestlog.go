package gateway

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/access"
)

// requestLog writes one line per request in the common log format, with the duration
// in seconds at the end:
//
//	192.0.2.7 - - [21/Nov/2026:11:40:00 +0000] "GET /llm-pages.json HTTP/1.1" 304 0 0.000042
//
// It omits the query and any part with a key, because they may be secret. The
// client address may come from a trusted proxy.
type requestLog struct {
	mu     sync.Mutex
	to     io.Writer
	out    *bufio.Writer
	buf    []byte
	second int64  // time of stamp in Unix seconds
	stamp  []byte // such as "[21/Nov/2026:11:40:00 +0000]"
}

func newRequestLog(w io.Writer) *requestLog {
	return &requestLog{to: w, out: bufio.NewWriterSize(w, 64<<10), second: -1}
}

func (l *requestLog) line(r *http.Request, host string, status int, bytes int64, start time.Time) {
	now := time.Now()
	if status == 0 {
		status = http.StatusOK
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := now.Unix(); s != l.second {
		l.second, l.stamp = s, now.UTC().AppendFormat(l.stamp[:0], "[02/Jan/2006:15:04:05 +0000]")
	}
	b := l.buf[:0]
	b = append(b, host...)
	b = append(b, " - - "...)
	b = append(b, l.stamp...)
	b = append(b, ` "`...)
	b = appendQuoted(b, access.Redact(r.Method))
	b = append(b, ' ')
	target, _, _ := strings.Cut(r.RequestURI, "?")
	b = appendQuoted(b, access.Redact(target))
	b = append(b, ' ')
	b = append(b, r.Proto...)
	b = append(b, `" `...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, bytes, 10)
	b = append(b, ' ')
	b = strconv.AppendFloat(b, now.Sub(start).Seconds(), 'f', 6, 64)
	b = append(b, '\n')
	l.buf = b
	_, _ = l.out.Write(b) // ignore errors, because a full disk must not stop the site
}

// appendQuoted appends s. It escapes quotes, backslashes, spaces, control characters and
// non-ASCII bytes.
func appendQuoted(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c <= ' ' || c >= 0x7f:
			b = append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}

// run flushes the buffer every second, until the context ends.
func (l *requestLog) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.flush()
			return
		case <-tick.C:
			l.flush()
		}
	}
}

func (l *requestLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out.Flush() != nil {
		// Reset the writer, because bufio keeps its first error, but a full disk may have space
		// again.
		l.out.Reset(l.to)
	}
}
