package tct

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
)

// MaxList may be larger than the body limit of the client.
func TestMaxList(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Link", `</list>; rel="index"; type="application/json"`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		origin := "http://" + r.Host
		_, _ = fmt.Fprintf(w, `{"version":1,"items":[{"cUrl":"%s/a/","mUrl":"%[1]s/a/llm.json","etag":"sha256-%s"}%s]}`, origin, strings.Repeat("0", 64), strings.Repeat(" ", 1<<20))
	}))
	defer srv.Close()
	client := fetch.New(&fetch.Options{AllowPrivate: true, MaxBody: 1 << 20}).HTTP()
	for limit, want := range map[int64]error{1 << 20: millrace.ErrTooLarge, 2 << 20: nil} {
		puts, last := 0, error(nil)
		for c, err := range Draft01().NewReader(client, srv.URL, &protocol.ReaderOptions{MaxList: limit}).Changes(t.Context(), "") {
			switch {
			case err != nil:
				last = err
			case c.Kind == millrace.Put:
				puts++
			}
		}
		if !errors.Is(last, want) || (puts == 1) != (want == nil) {
			t.Errorf("limit %d: %d puts, %v", limit, puts, last)
		}
	}
}
