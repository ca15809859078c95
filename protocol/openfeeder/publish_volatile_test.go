package openfeeder

import (
	"net/http/httptest"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// A reader with a token continues if the site no longer supports tokens.
func TestVolatileAfterToken(t *testing.T) {
	s := protocoltest.Serve(Protocol(), nil)
	srv := httptest.NewServer(s)
	defer srv.Close()
	show := func(title string, volatile bool) {
		t.Helper()
		var v millrace.View = protocoltest.NewView(millrace.Site{Base: srv.URL + "/"},
			[]*millrace.Page{{URL: srv.URL + "/a", Title: title, Known: millrace.AllFields}}, Protocol().Tagger)
		if volatile {
			v = protocoltest.Volatile(v)
		}
		if err := s.Show(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	var pages mirror.Pages
	for _, title := range []string{"First", "Second", "Third"} {
		show(title, title != "First")
		if _, err := mirror.Sync(t.Context(), srv.URL, NewReader(srv.Client(), srv.URL, nil), &pages, nil); err != nil {
			t.Fatal(err)
		}
		if p := pages.Page(srv.URL + "/a"); p == nil || p.Title != title {
			t.Errorf("%s: the mirrored page is %+v", title, p)
		}
	}
}
