package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
)

// notes is a small protocol with all optional features: discovery, its own form of errors, a
// search, a stream and updates.
//
//	/.well-known/notes   discovery
//	/notes               the titles of all pages
//	/notes?q=WORD        the pages with a word
//	/notes?url=PATH      one page
//	/notes/all           all pages, large
//	/notes/events        a stream of sequence numbers, from ?after= on
//	/notes/update        POST of paths, one a line; DELETE the same
type notes struct {
	asked   atomic.Int64 // calls of Find
	finds   atomic.Int64 // searches
	renders atomic.Int64
	slow    chan struct{} // a search for "slow" lasts until it is closed
}

func (n *notes) path(r *http.Request) bool {
	return r.URL.Path == "/.well-known/notes" || r.URL.Path == "/notes" || strings.HasPrefix(r.URL.Path, "/notes/")
}

func (n *notes) Find(ctx context.Context, v millrace.View, r *http.Request) (*millrace.Document, error) {
	n.asked.Add(1)
	d := &millrace.Document{
		Path: r.URL.RequestURI(), ETag: fmt.Sprintf("n%d-%x", v.Site().Seq, r.URL.RawQuery), CacheField: "X-Notes-Cache",
		Header: http.Header{
			"Content-Type": {"text/plain"}, "Cache-Control": {"public, max-age=60, s-maxage=600, must-revalidate"}, "Vary": {"Accept-Encoding"},
			"Access-Control-Allow-Origin": {"*"},
		},
	}
	query := r.URL.Query()
	switch {
	case r.URL.Path == "/.well-known/notes":
		d.Public = true
		d.Write = n.writes("notes of " + v.Site().Base)
	case r.URL.Path == "/notes" && query.Has("q"):
		n.finds.Add(1)
		if query.Get("q") == "" {
			return nil, &millrace.RequestError{Status: 400, Code: "NO_WORD", Text: "the query is empty"}
		}
		if query.Get("q") == "slow" && n.slow != nil {
			select {
			case <-n.slow:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		var found strings.Builder
		for p, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
			if err != nil {
				return nil, err
			}
			if strings.Contains(millrace.Text(p.Blocks), query.Get("q")) {
				fmt.Fprintln(&found, p.URL)
				d.PageCount++
			}
		}
		d.Query = query.Get("q")
		d.Write = n.writes(found.String())
	case r.URL.Path == "/notes" && query.Has("url"):
		p, err := v.Page(ctx, millrace.Ref{URL: query.Get("url")})
		if errors.Is(err, millrace.ErrNotFound) {
			return nil, &millrace.RequestError{Status: 404, Code: "NO_PAGE", Text: "page not found", Page: query.Get("url")}
		}
		if err != nil {
			return nil, err
		}
		d.Page, d.Continuation = query.Get("url"), query.Has("rest")
		d.Write = n.writes(millrace.Text(p.Blocks))
	case r.URL.Path == "/notes":
		d.Write = func(ctx context.Context, w io.Writer) error {
			n.renders.Add(1)
			for p, err := range v.Scan(ctx, millrace.Scan{}) {
				if err != nil {
					return err
				}
				fmt.Fprintln(w, p.Title)
			}
			return nil
		}
		d.PageCount = int64(v.Site().Pages)
	case r.URL.Path == "/notes/gone":
		return nil, &millrace.RequestError{Status: 410, Code: "GONE", Text: "the page was deleted"}
	case r.URL.Path == "/notes/broken":
		return nil, errors.New("secret error")
	case r.URL.Path == "/notes/panic":
		panic("secret panic")
	default:
		return nil, millrace.ErrNotFound
	}
	return d, nil
}

// Costly implements [millrace.ErrorRenderer].
func (n *notes) Costly(r *http.Request) bool { return r.URL.Path == "/notes" && r.URL.Query().Has("q") }

func (n *notes) writes(text string) func(context.Context, io.Writer) error {
	return func(_ context.Context, w io.Writer) error {
		n.renders.Add(1)
		_, err := io.WriteString(w, text)
		return err
	}
}

func (n *notes) All(_ context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		yield(&millrace.Document{Path: "/notes/all", Large: true, Header: http.Header{"Content-Type": {"text/plain"}}, Parts: millrace.SinglePart(fmt.Sprint(v.Site().Seq), func(ctx context.Context, w io.Writer) error {
			for p, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
				if err != nil {
					return err
				}
				fmt.Fprintln(w, p.Title, millrace.Text(p.Blocks))
			}
			return nil
		})}, nil)
	}
}

func (n *notes) Advertise(millrace.View) millrace.Advertisement {
	return millrace.Advertisement{Robots: []string{"Notes: /.well-known/notes"}, Public: []string{"/.well-known/notes"}}
}

func (n *notes) RenderError(r *http.Request, status int, err error) (http.Header, []byte, bool) {
	if !n.path(r) {
		return nil, nil, false
	}
	code, text := "ERROR", http.StatusText(status)
	if reqErr, ok := errors.AsType[*millrace.RequestError](err); ok {
		code, text = cmp.Or(reqErr.Code, code), reqErr.Text
	}
	body, _ := json.Marshal(map[string]any{"notes": map[string]any{"status": status, "code": code, "text": text}})
	return http.Header{"Content-Type": {"application/json"}, "X-Notes": {"1"}, "Cache-Control": {"public, max-age=60"}, "Content-Length": {"7"}}, body, true
}

func (n *notes) Scope(r *http.Request) (millrace.Scope, bool) {
	switch {
	case r.URL.Path == "/notes/events" && r.Method == http.MethodGet:
		return millrace.ScopeRead, true
	case r.URL.Path == "/notes/update" && (r.Method == http.MethodPost || r.Method == http.MethodDelete):
		return millrace.ScopeUpdate, true
	}
	return "", false
}

func (n *notes) Serve(w http.ResponseWriter, r *http.Request, live millrace.Live) error {
	if r.URL.Path == "/notes/update" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return &millrace.RequestError{Status: 413, Code: "TOO_LARGE", Text: "too many paths"}
		}
		t, err := live.Update(r.Context(), strings.Fields(string(body)), r.Method == http.MethodDelete)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, t)
		return nil
	}
	after, err := strconv.ParseUint(cmp.Or(r.URL.Query().Get("after"), "0"), 10, 64)
	if err != nil {
		return &millrace.RequestError{Status: 400, Code: "NO_NUMBER", Text: "after is not a number"}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	control := http.NewResponseController(w)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(time.Minute)) // a recorder has no deadlines
		if err := control.Flush(); err != nil {
			return err
		}
		v, err := live.Wait(r.Context(), after)
		if err != nil {
			fmt.Fprintf(w, "end %s\n", millrace.ErrorCode(err))
			return nil //nolint:nilerr // the error is in the response
		}
		after = v.Site().Seq
		fmt.Fprintln(w, "at", after)
	}
}
