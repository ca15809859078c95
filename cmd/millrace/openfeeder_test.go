package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/agent"
)

// A client with a token older than the log's horizon must read the index, wherever a
// token is accepted. A mirror reads it and loses nothing.
func TestHorizon(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), copySite(t, "handbook")
	db, mirror := filepath.Join(t.TempDir(), "site.db"), filepath.Join(t.TempDir(), "mirror.db")
	s := serve(t, dir, "--store", db)
	base, address := s.url, strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/")
	pull := func() agent.Report {
		t.Helper()
		code, out, errs := command(t, nil, "pull", base, "--allow-private", "--via", "openfeeder", "--store", mirror, "--json")
		var r agent.Report
		if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
			t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
		}
		return r
	}
	first := pull()
	var index struct {
		Token string `json:"sync_token"`
	}
	if _, _, body := get(t, base+"openfeeder"); json.Unmarshal([]byte(body), &index) != nil || index.Token == "" {
		t.Fatal(body)
	}
	s.stop()

	if err := os.RemoveAll(filepath.Join(dir, "about")); err != nil {
		t.Fatal(err)
	}
	s = serve(t, dir, "--store", db, "--listen", address)
	eventually(t, "the page is deleted", func() bool {
		code, _, _ := get(t, base+"openfeeder?url=/about/")
		return code == http.StatusNotFound
	})
	s.stop()
	time.Sleep(time.Second) // the log has whole seconds
	st := openStore(t, db, false)
	site, err := st.Site(ctx, "folder "+dir, base)
	if err != nil {
		t.Fatal(err)
	}
	if err := site.Compact(ctx, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}

	serve(t, dir, "--store", db, "--listen", address)
	for path, header := range map[string][]string{
		"openfeeder?since=" + url.QueryEscape(index.Token):        nil,
		"openfeeder/events?since=" + url.QueryEscape(index.Token): nil,
		"openfeeder/events": {"Last-Event-ID", index.Token},
	} {
		code, h, body := get(t, base+path, header...)
		if code != http.StatusGone || h.Get("Content-Type") != "application/json; charset=utf-8" || !strings.Contains(body, `"error":{"code":"RESYNC_REQUIRED"`) {
			t.Errorf("%s: %d %v %s", path, code, h, body)
		}
	}
	if second := pull(); second.Deleted != 1 || second.Added+second.Updated > 0 || second.Unchanged != first.Added-1 {
		t.Errorf("%d pages at first, then %+v", first.Added, second)
	}
}
