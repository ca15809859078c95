package edition

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// The listing has the documents and artifacts with the sizes of their responses.
func TestListing(t *testing.T) {
	proto := &memProtocol{}
	s := serverIn(t, newMemSite(300), proto, newArtifacts(), nil)
	publish(t, s)
	ed := s.Current()
	var paths []string
	for _, l := range ed.Listing() {
		paths = append(paths, l.Path)
		for coding, want := range map[string]int64{"identity": l.Size, "gzip, br, zstd": l.MinSize} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, l.Path, nil)
			r.Header.Set("Accept-Encoding", coding)
			if done, err := s.Serve(w, r); !done || err != nil {
				t.Fatal(done, err)
			}
			if got := int64(w.Body.Len()); got != want && coding == "identity" || got < want || l.Protocol != ed.Protocol(l.Path) || l.Modified.IsZero() {
				t.Errorf("%s as %s has %d bytes: %+v", l.Path, coding, got, l)
			}
		}
		if l.MinSize >= l.Size {
			t.Errorf("no coding reduces the size: %+v", l)
		}
	}
	slices.Sort(paths)
	if want := slices.Sorted(slices.Values(append(ed.Large(), ed.ArtifactPaths()...))); !slices.Equal(paths, want) || len(paths) == 0 {
		t.Errorf("%q, want %q", paths, want)
	}
}
