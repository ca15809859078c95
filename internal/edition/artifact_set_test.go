package edition

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
)

// artifactProtocol is a memProtocol with one artifact of the whole site in three codings, and
// an index that names the artifacts and the hour. It keeps superseded artifacts until the end
// of the hour.
type artifactProtocol struct {
	memProtocol
	made     int
	versions string // see millrace.Artifact
}

func (r *artifactProtocol) Artifacts(ctx context.Context, view millrace.View, now time.Time, s millrace.ArtifactSet) (time.Time, error) {
	v := view.(*memView)
	hour := now.Truncate(time.Hour)
	note, err := json.Marshal(map[string]any{"hour": hour, "seq": v.seq})
	if err != nil {
		return time.Time{}, err
	}
	var paths []string
	var current []millrace.Artifact // of the view
	for _, f := range s.Existing() {
		var was struct {
			Hour time.Time
			Seq  uint64
		}
		if err := json.Unmarshal(f.Note, &was); err != nil {
			return time.Time{}, err
		}
		switch {
		case !was.Hour.Equal(hour):
		case was.Seq == v.seq:
			current = append(current, f)
		default:
			s.Keep(f)
			paths = append(paths, f.Path)
		}
	}
	if len(current) == 3 {
		for _, f := range current {
			s.Keep(f)
			paths = append(paths, f.Path)
		}
	} else {
		r.made++
		d, err := s.Create()
		if err != nil {
			return time.Time{}, err
		}
		defer d.Discard()
		for _, id := range slices.Sorted(maps.Keys(v.m)) {
			if _, err := fmt.Fprintln(d, len(v.m[id].body)); err != nil {
				return time.Time{}, err
			}
		}
		files, err := d.Finish(ctx, fmt.Appendf(nil, "pages: %04d\n", len(v.m)), millrace.Artifact{
			ETag: fmt.Sprint("seq", v.seq), Modified: timeOf(v.seq), Note: note,
			Header: http.Header{"Content-Type": {"text/x-pages"}, "Cache-Control": {"public, max-age=60"}}, Versions: r.versions,
		}, []string{"zstd", "gzip", ""}, func(coding, sum string) string { return "/files/" + sum + "." + coding })
		if err != nil {
			return time.Time{}, err
		}
		for _, f := range files {
			paths = append(paths, f.Path)
		}
	}
	index := hour.String() + "\n" + strings.Join(paths, "\n")
	return hour.Add(time.Hour), s.Put(ctx, &millrace.Document{
		Path: "/index.txt", Header: http.Header{"Content-Type": {"text/plain"}},
		Parts: millrace.SinglePart(index, func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, index)
			return err
		}),
	})
}

// listed returns the paths of the artifacts that the index names.
func listed(t *testing.T, s *Server) []string {
	t.Helper()
	return strings.Split(ask(t, s, "GET", "/index.txt").Body.String(), "\n")[1:]
}

func TestArtifactSet(t *testing.T) {
	now := epochStart.Truncate(time.Hour).Add(time.Minute)
	site, proto, dir := newMemSite(20), &artifactProtocol{}, newArtifacts()
	o := &Options{Now: func() time.Time { return now }}
	s := serverIn(t, site, proto, dir, o)
	s.grace = time.Nanosecond
	publish(t, s)
	first := listed(t, s)
	if len(first) != 3 || proto.made != 1 {
		t.Fatalf("files %q, built %d times", first, proto.made)
	}
	plain := ask(t, s, "GET", first[2], "Accept-Encoding", "gzip, br, zstd")
	if !strings.HasPrefix(plain.Body.String(), "pages: 0020\n") {
		t.Errorf("mended: %.20q", plain.Body)
	}
	h := plain.Header()
	if h.Get("Content-Encoding") != "" || strings.Contains(h.Get("Vary"), "Encoding") || h.Get("ETag") != `"seq20"` ||
		h.Get("Accept-Ranges") != "bytes" || h.Get("Last-Modified") != timeOf(20).Format(http.TimeFormat) {
		t.Errorf("header of the plain file: %v", h)
	}
	for i, coding := range []string{"zstd", "gzip"} {
		w := ask(t, s, "GET", first[i], "Accept-Encoding", "identity")
		if w.Header().Get("Content-Encoding") != coding || w.Header().Get("ETag") != `"seq20"` || w.Header().Get("Content-Length") == "" {
			t.Errorf("header of the %s file: %v", coding, w.Header())
		}
		if got := decoded(t, coding, w.Body.Bytes()); got != plain.Body.String() {
			t.Errorf("the %s file contains %q", coding, got)
		}
		if w := ask(t, s, "HEAD", first[i]); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" || w.Header().Get("Content-Encoding") != coding {
			t.Errorf("HEAD: %d %v", w.Code, w.Header())
		}
		if w := ask(t, s, "GET", first[i], "If-None-Match", `"seq20"`); w.Code != 304 || w.Header().Get("Cache-Control") == "" {
			t.Errorf("conditional: %d %v", w.Code, w.Header())
		}
		if w := ask(t, s, "GET", first[i], "Range", "bytes=2-5", "If-Range", `"seq20"`); w.Code != 206 || w.Body.Len() != 4 || w.Header().Get("Content-Encoding") != coding {
			t.Errorf("range: %d %v", w.Code, w.Header())
		}
		if w := ask(t, s, "GET", first[i], "Range", "bytes=2-5", "If-Range", `"other"`); w.Code != 200 {
			t.Errorf("range of another state: %d", w.Code)
		}
	}

	size := plain.Body.Len()
	for _, span := range [][2]int{{0, 0}, {2, 5}, {7, size - 1}, {size - 3, size + 9}, {0, size - 1}} {
		w := ask(t, s, "GET", first[2], "Range", fmt.Sprintf("bytes=%d-%d", span[0], span[1]))
		if w.Code != 206 || w.Body.String() != plain.Body.String()[span[0]:min(span[1]+1, size)] {
			t.Errorf("range %d of the plain file: %d %q", span, w.Code, w.Body)
		}
	}

	// A change creates new artifacts. The old ones stay as long as the protocol keeps them.
	site.set("/1", "a longer text than before")
	publish(t, s)
	if got := listed(t, s); len(got) != 6 || !slices.Equal(got[:3], first) || proto.made != 2 {
		t.Errorf("files after a change: %q, built %d times", got, proto.made)
	}
	for i, coding := range []string{"zstd", "gzip", ""} {
		if w := ask(t, s, "GET", first[i]); w.Code != 200 || decoded(t, coding, w.Body.Bytes()) != plain.Body.String() {
			t.Errorf("a file that was kept: %d", w.Code)
		}
	}
	if changed, err := s.Publish(t.Context()); changed || err != nil {
		t.Errorf("nothing to publish: %t %v", changed, err)
	}

	// Another process with the same artifacts serves the same documents.
	twin := serverIn(t, site, &artifactProtocol{}, dir, o)
	if err := twin.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}

	// After some time, a new edition drops the old artifacts.
	index := ask(t, s, "GET", "/index.txt").Header()
	now = now.Add(time.Hour)
	if changed, err := s.Publish(t.Context()); !changed || err != nil {
		t.Fatalf("the hour is over: %t %v", changed, err)
	}
	if got := listed(t, s); len(got) != 3 || proto.made != 3 {
		t.Errorf("files after an hour: %q, built %d times", got, proto.made)
	}
	if h := ask(t, s, "GET", "/index.txt").Header(); h.Get("ETag") == index.Get("ETag") || h.Get("Last-Modified") <= index.Get("Last-Modified") {
		t.Errorf("the index after an hour: %v, before %v", h, index)
	}
	if w := ask(t, s, "GET", first[0]); w.Code != 0 {
		t.Errorf("a withdrawn file: %d", w.Code)
	}
	if err := s.collect(t.Context(), nil, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	files := slices.DeleteFunc(stored(t, s), func(name string) bool { return !strings.HasSuffix(name, artifactSuffix) })
	if len(files) != 2 { // the identity bytes come from the gzip artifact
		t.Errorf("artifacts: %q", files)
	}
	if err := twin.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, twin); !slices.Equal(got, listed(t, s)) {
		t.Errorf("the other process has %q", got)
	}
}

// The server does not send a missing or damaged artifact, and builds it again.
func TestFileLost(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			s := newTestServer(t, newMemSite(20), &artifactProtocol{}, nil)
			publish(t, s)
			lose(t, s, s.Current().manifest.Artifacts[0].name())
			path := listed(t, s)[0]
			for range 2 {
				_, err := s.Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
				if status := millrace.Status(err); err == nil || status != http.StatusServiceUnavailable && !errors.Is(err, ErrBroken) {
					t.Errorf("a response without a file: %v", err)
				}
			}
			if w := ask(t, s, "GET", listed(t, s)[2]); w.Code != http.StatusOK {
				t.Errorf("another file: %d", w.Code)
			}
			publish(t, s)
			w := ask(t, s, "GET", path)
			if w.Code != http.StatusOK || !strings.HasPrefix(decoded(t, "zstd", w.Body.Bytes()), "pages: 0020") {
				t.Errorf("after rebuilding: %d", w.Code)
			}
		})
	}
}

// The identity artifact is lost with the gzip artifact.
func TestFileLostInGzip(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			s := newTestServer(t, newMemSite(20), &artifactProtocol{}, nil)
			publish(t, s)
			paths := listed(t, s)
			plain := ask(t, s, "GET", paths[2]).Body.String()
			lose(t, s, s.Current().manifest.Artifacts[1].name())
			for _, fields := range [][]string{nil, nil, {"Range", "bytes=40-41"}} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, paths[2], nil)
				if fields != nil {
					r.Header.Set(fields[0], fields[1])
				}
				_, err := s.Serve(httptest.NewRecorder(), r)
				if status := millrace.Status(err); err == nil || status != http.StatusServiceUnavailable && !errors.Is(err, ErrBroken) {
					t.Errorf("%q: a response without a file: %v", fields, err)
				}
			}
			publish(t, s)
			for i, coding := range []string{"zstd", "gzip", ""} {
				if w := ask(t, s, "GET", paths[i]); w.Code != http.StatusOK || decoded(t, coding, w.Body.Bytes()) != plain {
					t.Errorf("after rebuilding: %d %s", w.Code, coding)
				}
			}
		})
	}
}

func decoded(t *testing.T, coding string, b []byte) string {
	t.Helper()
	var r io.Reader
	var err error
	switch coding {
	case "zstd":
		r, err = zstd.NewReader(bytes.NewReader(b))
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(b))
	default:
		return string(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

var errNoLuck = errors.New("no luck")

// A discarded artifact writer stores nothing, even if its protocol fails.
func TestArtifactSetFails(t *testing.T) {
	s := newTestServer(t, newMemSite(3), &failingProtocol{}, nil)
	if _, err := s.Publish(t.Context()); !errors.Is(err, errNoLuck) {
		t.Errorf("%v", err)
	}
	for _, name := range stored(t, s) {
		if strings.HasSuffix(name, artifactSuffix) {
			t.Errorf("stored: %s", name)
		}
	}
}

type failingProtocol struct{ memProtocol }

func (*failingProtocol) Artifacts(ctx context.Context, _ millrace.View, _ time.Time, s millrace.ArtifactSet) (time.Time, error) {
	d, err := s.Create()
	if err != nil {
		return time.Time{}, err
	}
	defer d.Discard()
	if _, err := d.Write([]byte("half")); err != nil {
		return time.Time{}, err
	}
	if _, err := d.Finish(ctx, nil, millrace.Artifact{ETag: "x"}, []string{"none-such"}, func(_, sum string) string { return "/" + sum }); err == nil {
		return time.Time{}, fmt.Errorf("an unknown coding was accepted")
	}
	return time.Time{}, errNoLuck
}
