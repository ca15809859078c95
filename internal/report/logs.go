package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/accesslog"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/savings"
)

// LogOptions configure [Logs].
type LogOptions struct {
	Files        []string      // names of the logs; "-" = Stdin
	Stdin        io.Reader     // read for the file "-"; must be set if Files contains it
	Unit         time.Duration // unit of the integer at the end of each line. If zero, the integer is ignored.
	Site         string        // base URL of the site; requests to other hosts are skipped. If empty, all sites.
	Since        time.Time     // earlier requests are skipped. If zero, no request is skipped for its time.
	Bots         *bots.Table
	Local        map[netip.Addr]bool // addresses of this machine, to recognize its own requests
	Coefficients savings.Coefficients
	// Client fetches pages of the site, to compare their HTML with their documents. It must
	// obey robots.txt. Without Site, it is not used.
	Client *http.Client
}

// Logs reports the traffic in the access logs of web servers. If a file is damaged or missing but
// others contain requests, the report lists the file. If no file contains a request, Logs returns
// the errors of the files, or ErrInvalid with the code no-requests if all files could be read.
func Logs(ctx context.Context, o *LogOptions) (*Report, error) {
	r := newLogReport(o)
	s := &accesslog.Scanner{Parser: accesslog.Parser{Unit: o.Unit}}
	var damaged []string
	var failed error
	for _, name := range o.Files {
		err := o.scan(ctx, s, name, r.add)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			damaged, failed = append(damaged, err.Error()), errors.Join(failed, err)
		}
	}
	switch {
	case s.Requests == 0 && failed != nil:
		return nil, failed
	case s.Requests == 0:
		why := "the logs are empty"
		if s.Lines > 0 {
			why = "no line is a request in the combined or common format, or JSON of Caddy, Cloudflare or nginx"
		}
		if len(s.Examples) > 0 {
			why += fmt.Sprintf("; line %d of %s: %s", s.Examples[0].Line, s.Examples[0].File, s.Examples[0].Text)
		}
		return nil, fmt.Errorf("read access logs: %w: %s", millrace.Coded("no-requests", millrace.ErrInvalid), why)
	}
	out, err := r.report(s, damaged)
	if err == nil && o.Site != "" {
		err = r.measure(ctx, o.Client, out)
	}
	return out, err
}

// scan reads one log.
func (o *LogOptions) scan(ctx context.Context, s *accesslog.Scanner, name string, each func(*accesslog.Line)) error {
	in := o.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("access log: %w", err)
		}
		defer func() { _ = f.Close() }() // opened only for reading
		in = f
	}
	return s.Scan(ctx, name, in, each)
}
