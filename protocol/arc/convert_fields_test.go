package arc

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// If a page has no attributes, the fields of its forms are added to the snapshot derived from
// the page.
func TestSnapshotFields(t *testing.T) {
	p := guide()
	p.Blocks = p.Blocks[:2]
	p.Extra = map[string]json.RawMessage{Name: json.RawMessage(`{"fields":[{"field":"from","type":"email"}]}`)}
	const want = `{"fields":[{"field":"from","type":"email"}],"page":"article",` +
		`"summary":"Water in the evening. The ground keeps it then.","title":"How to water","type":"HowTo"}`
	got := Snapshot(p)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := canonicalObject(got); !bytes.Equal(c, got) {
		t.Errorf("the canonical form is %s", c)
	}
	once := carry(site, p)
	if once.Title != p.Title || once.Kind != millrace.Article || !bytes.Equal(once.Extra[Name], got) {
		t.Errorf("carried: %+v", once)
	}
	if twice := carry(site, once); !bytes.Equal(once.Canonical(), twice.Canonical()) {
		t.Errorf("(-once +twice):\n%s", cmp.Diff(once, twice))
	}
}
