package scp

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/dcz"
	"github.com/millrace/millrace/internal/fetch"
)

// dictionaries are those of one origin, in memory.
type dictionaries struct {
	mu    sync.Mutex
	index fetch.DictionaryIndex
	files sync.Map
}

func (d *dictionaries) Index(context.Context, string) (fetch.DictionaryIndex, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.index, nil
}

func (d *dictionaries) Update(_ context.Context, _ string, change func(*fetch.DictionaryIndex)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.index)
	return nil
}

func (d *dictionaries) Read(_ context.Context, _, match string) ([]byte, error) {
	if b, ok := d.files.Load(match); ok {
		return b.([]byte), nil
	}
	return nil, millrace.ErrNotFound
}

func (d *dictionaries) Write(_ context.Context, _, match string, content []byte) error {
	d.files.Store(match, content)
	return nil
}

// codes makes a host compress an uncompressed snapshot with the dictionaries that the host knows.
func (h *host) codes(path string, known map[dcz.ID][]byte) {
	plain := h.files[path].body
	known[dcz.Sum(plain)] = plain
	for _, suffix := range []string{"", ".zst"} {
		h.files[path+suffix].header.Set(dcz.Use, `match="/all-*.scp"`)
	}
	h.files[path].answer = func(w http.ResponseWriter, r *http.Request) {
		body := plain
		id, _ := dcz.ParseField(r.Header.Get(dcz.Available))
		if dict := known[id]; dict != nil && strings.Contains(r.Header.Get("Accept-Encoding"), dcz.Name) {
			var err error
			if body, err = new(dcz.Encoder).Encode(dict, id, plain); err != nil {
				h.t.Error(err)
			}
			w.Header().Set("Content-Encoding", dcz.Name)
		}
		w.Header().Set("Content-Type", contentType)
		if use := h.files[path].header.Get(dcz.Use); use != "" {
			w.Header().Set(dcz.Use, use)
		}
		_, _ = w.Write(body)
	}
}

// A reader that has the last snapshot downloads only about as many bytes as have changed, and
// detects deletions. It downloads its first snapshot compressed. If the server no longer knows the
// dictionary, the reader downloads the compressed file.
func TestReadDictionary(t *testing.T) {
	h := newHost(t)
	var pages []string
	for i := range 200 {
		pages = append(pages, fmt.Sprintf("/a/page/with/a/long/name/%d", i))
	}
	known := map[dcz.ID][]byte{}
	publish := func(d int, pages []string, delta string) {
		name := fmt.Sprintf("all-2%d.scp", d)
		all := h.collection(name, day(d, 0), time.Time{}, pages...)
		h.put("/"+name+".zst", coded(".zst", h.files["/"+name].body))
		h.offers(all, h.element(name+".zst", day(d, 0), time.Time{}, len(pages)), h.collection("all-delta.scp", day(d, 0), day(d-1, 0), delta))
		h.codes("/"+name, known)
	}
	f := follow(h)
	f.o.Deltas = 1000
	held := new(dictionaries)
	client := func() *fetch.Client {
		c := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true, Dictionaries: held})
		t.Cleanup(c.CloseIdleConnections)
		f.client = c.HTTP()
		return c
	}
	publish(2, pages, "/x")
	client()
	if got, asked := f.read(t); !strings.HasSuffix(got, "\nmark whole") || len(f.pages) != 200 || asked[len(asked)-1] != "200 /all-22.scp.zst" {
		t.Fatal(got, asked)
	}
	for d := 3; d < 6; d++ {
		pages = append(pages[1:], fmt.Sprintf("/new/%d %d", d, d))
		publish(d, pages, pages[199])
		c := client()
		got, asked := f.read(t)
		if !strings.HasSuffix(got, "\nmark whole") || len(f.pages) != 200 || strings.Join(asked, " ") != fmt.Sprintf("200 /sitemap.xml if new 200 /all-2%d.scp", d) {
			t.Error(got, asked, len(f.pages))
		}
		if n := c.Stats().BodyBytes; n > 2500 {
			t.Errorf("%d bytes", n)
		}
		f.expectNotes(t)
	}
	lost := maps.Clone(known)
	clear(known)
	publish(6, append(pages[1:], "/new/6 6"), "/new/6 6")
	client()
	got, asked := f.read(t)
	slices.Sort(asked) // a response is in the log only after it has ended
	if want := "200 /all-26.scp 200 /all-26.scp.zst 200 /sitemap.xml if new"; !strings.HasSuffix(got, "\nmark whole") || strings.Join(asked, " ") != want {
		t.Error(got, asked)
	}
	// Deltas after the snapshot are compressed with the snapshot as the dictionary.
	maps.Copy(known, lost)
	changed := pages[100:160]
	delta := h.collection("all-delta7.scp", day(7, 0), day(6, 0), changed...)
	h.put("/all-delta7.scp.zst", coded(".zst", h.files["/all-delta7.scp"].body))
	h.offers(h.element("all-delta7.scp.zst", day(7, 0), day(6, 0), len(changed)), delta)
	h.codes("/all-delta7.scp", known)
	for _, suffix := range []string{"", ".zst"} {
		h.files["/all-delta7.scp"+suffix].header.Del(dcz.Use)
	}
	c := client()
	if got, asked = f.read(t); strings.Count(got, "newer ") != len(changed) || strings.Join(asked, " ") != "200 /sitemap.xml if new 200 /all-delta7.scp" || c.Stats().BodyBytes > 2500 {
		t.Error(got, asked, c.Stats().BodyBytes)
	}
	f.expectNotes(t)
	if len(held.index.Dictionaries) != 1 || !held.index.Refused.IsZero() {
		t.Errorf("%+v", held.index)
	}
}
