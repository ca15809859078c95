package wordpress

import (
	"net/http"
	"testing"

	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store/memory"
)

// Excluded types are not read. If a type is excluded later, its stored pages are deleted.
func TestExcludeTypes(t *testing.T) {
	f := newFake(t)
	f.fill(3)
	st := memory.New(nil)
	read := func(name string, not ...string) *mirror.Report {
		t.Helper()
		site, err := st.Site(t.Context(), name, f.Base())
		if err != nil {
			t.Fatal(err)
		}
		src, err := New(&http.Client{}, f.Address(), &Options{ExcludeTypes: not})
		if err != nil {
			t.Fatal(err)
		}
		r, err := mirror.Sync(t.Context(), "wordpress", src, site, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	all := read("a")
	if without := read("b", "post"); all.Added < 3 || without.Added != all.Added-3 {
		t.Errorf("%d pages without posts, %d with them", without.Added, all.Added)
	}
	first := read("a", "post") // a sudden loss of all pages needs confirmation by a second run
	if second := read("a", "post"); first.Deleted+second.Deleted != 3 {
		t.Errorf("excluded later: %+v, then %+v", first, second)
	}
	if r := read("a"); r.Added != 3 {
		t.Errorf("no longer excluded: %+v", r)
	}
}
