package wordpress

import (
	"net/http"
	"testing"

	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store/memory"
)

// A post that gets a password is deleted at once, however few posts exist. The protection against
// sudden losses does not apply to deletions that the site itself reports.
func TestClosedAtOnce(t *testing.T) {
	f := newFake(t)
	f.fill(3)
	site, err := memory.New(nil).Site(t.Context(), "site", f.Base())
	if err != nil {
		t.Fatal(err)
	}
	sync := func() *mirror.Report {
		t.Helper()
		src, err := New(&http.Client{}, f.Address(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := mirror.Sync(t.Context(), "wordpress", src, site, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sync()
	for _, p := range f.posts {
		p.closed, p.modified = true, f.tick()
		r := sync()
		if r.Deleted != 1 || r.UnconfirmedDeletions != 0 {
			t.Errorf("%s, which has a password now: %+v", p.slug, r)
		}
		f.tick()
	}
	if r := sync(); r.Added+r.Updated+r.Deleted != 0 {
		t.Errorf("without a change: %+v", r)
	}
	v, err := site.Head(t.Context())
	if err != nil || v.Site().Pages != 0 {
		t.Errorf("%d pages remain, %v", v.Site().Pages, err)
	}
	f.posts[1].closed, f.posts[1].modified = false, f.tick()
	if r := sync(); r.Added != 1 {
		t.Errorf("after the removal of a password: %+v", r)
	}
}
