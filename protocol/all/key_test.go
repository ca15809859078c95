package all_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

// Every reader sends the site's key to the site.
func TestReadersShowKeys(t *testing.T) {
	for _, p := range all.Protocols() {
		sent := false
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent = sent || r.Header.Get("Authorization") == "Bearer k"
			http.NotFound(w, r)
		}))
		o := &protocol.ReaderOptions{Key: func(origin string) string {
			if origin == srv.URL {
				return "k"
			}
			return ""
		}}
		for range p.NewReader(srv.Client(), srv.URL+"/", o).Changes(t.Context(), "") {
		}
		srv.Close()
		if !sent {
			t.Errorf("%s: no request had the key", p.Name)
		}
	}
}
