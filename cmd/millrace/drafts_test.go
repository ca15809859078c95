package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/millrace/millrace/internal/canon"
)

var (
	alternateElement = regexp.MustCompile(`<link rel="alternate" type="application/json" href="([^"]+)"`)
	linkField        = regexp.MustCompile(`^<([^>]+)>; rel="(\w+)"; type="application/json"$`)
)

// jsonLinks returns the targets of the Link fields with a relation and type.
func jsonLinks(h http.Header, rel string) (out []string) {
	for _, field := range h.Values("Link") {
		if m := linkField.FindStringSubmatch(field); m != nil && m[2] == rel {
			out = append(out, m[1])
		}
	}
	return out
}

// Two clients, one for each draft of TCT, read one server. Neither follows the links of
// the other draft.
func TestBothDrafts(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"))
	root := strings.TrimSuffix(s.url, "/")
	type list struct {
		Version int
		Items   []map[string]string
	}
	read := func(url string) (h http.Header, doc map[string]any) {
		t.Helper()
		status, h, body := get(t, url)
		if err := json.Unmarshal([]byte(body), &doc); status != http.StatusOK || err != nil {
			t.Fatalf("%s: %d, %v", url, status, err)
		}
		return h, doc
	}
	items := func(url string) []map[string]string {
		t.Helper()
		_, _, body := get(t, url)
		var l list
		if err := json.Unmarshal([]byte(body), &l); err != nil || l.Version != 1 || len(l.Items) < 10 {
			t.Fatalf("%s: %v\n%.500s", url, err, body)
		}
		return l.Items
	}

	// own returns the target of the page's element for one draft, chosen by the form of
	// its hash.
	own := func(curl, prefix string) (murl string) {
		t.Helper()
		_, _, page := get(t, curl)
		found := alternateElement.FindAllStringSubmatch(page, -1)
		if len(found) != 2 {
			t.Fatalf("%s links to %v", curl, found)
		}
		for _, m := range found {
			if _, doc := read(m[1]); strings.HasPrefix(doc["hash"].(string), "sha256-") == (prefix != "") {
				murl = m[1]
			}
		}
		return murl
	}

	// Draft-00: the list has a fixed name, and elements of the HTML link to documents.
	for i, it := range items(root + "/llm-sitemap.json") {
		if i == 0 && strings.TrimSuffix(it["cUrl"], "/") != root {
			t.Errorf("the first item is %s", it["cUrl"])
		}
		if found := own(it["cUrl"], ""); found != it["mUrl"] || it["etag"] != "" {
			t.Fatalf("draft-00: %v links to %v", it, found)
		}
		h, doc := read(it["mUrl"])
		want := canon.SHA256Hex([]byte(canon.NormalizeLower(doc["content"].(string))))
		if doc["hash"] != want || it["contentHash"] != "sha256-"+want || h.Get("ETag") != `"sha256-`+want+`"` ||
			doc["canonical_url"] != it["cUrl"] || h.Get("Link") != "<"+it["cUrl"]+`>; rel="canonical"` {
			t.Errorf("draft-00: %v has %v with %v", it, doc["hash"], h)
		}
	}

	// Draft-01: the root's Link field names the list; Link fields or elements link to
	// documents.
	_, home, _ := get(t, root+"/")
	index := jsonLinks(home, "index")
	if len(index) != 1 || index[0] != "/llm-pages.json" {
		t.Fatalf("draft-01: the root links to %q", index)
	}
	for _, it := range items(root + index[0]) {
		_, page, _ := get(t, it["cUrl"])
		found := jsonLinks(page, "alternate")
		if len(found) != 1 || found[0] != it["mUrl"] || own(it["cUrl"], "sha256-") != it["mUrl"] || it["contentHash"] != "" {
			t.Fatalf("draft-01: %v links to %v", it, found)
		}
		h, doc := read(it["mUrl"])
		hash := doc["hash"]
		delete(doc, "hash")
		rest, err := json.Marshal(doc)
		if err == nil {
			rest, err = jcs.Transform(rest)
		}
		if want := "sha256-" + canon.SHA256Hex(rest); err != nil || hash != want || it["etag"] != want || h.Get("ETag") != `"`+want+`"` {
			t.Errorf("draft-01: %v has %v with %v (%v)", it, hash, h, err)
		}
	}

	// check reports on both drafts.
	for _, name := range []string{"tct-00", "tct-01"} {
		code, out, errs := command(t, nil, "check", s.url, "--protocol", name, "--allow-private")
		if code != 0 || strings.Contains(out, "\nMUST") || strings.Contains(out, "\nSHOULD") {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
}
