//go:build unix

package postgres

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// A damaged tag or dictionary is found. After the repair, the site is published again.
func TestRealVerify(t *testing.T) {
	server := cluster(t)
	tagger := millrace.Tagger{Protocol: "long", Tag: func(_ millrace.Site, p *millrace.Page) (string, error) {
		return strings.Repeat("words of "+p.URL+" ", 20), nil
	}}
	words := strings.Fields("mill race water wheel stone grain flour gate sluice weir river bucket axle beam sack hopper")
	rng := rand.New(rand.NewPCG(1, 2))
	var batch []millrace.Change
	for i := range 40 {
		var text strings.Builder
		for range 300 {
			text.WriteString(words[rng.IntN(len(words))] + " ")
		}
		url := fmt.Sprint(base, i)
		batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: url, Version: "1"}, Page: &millrace.Page{
			URL: url, Title: "Page", Known: millrace.AllFields, Detail: millrace.DetailBlocks, Blocks: millrace.TextBlocks(text.String()),
		}})
	}
	for damage, statement := range map[string]string{
		"long":       `UPDATE tag SET value = '\x28b52ffd00' WHERE url LIKE '%/0'`,
		"dictionary": "UPDATE dictionary SET data = substr(data, 2)",
	} {
		t.Run(damage, func(t *testing.T) {
			name, dsn := create(t, server)
			publish := func() {
				t.Helper()
				st := openStore(t, dsn, nil)
				site := openSite(t, st)
				if _, err := site.Apply(t.Context(), "one", batch); err != nil {
					t.Fatal(err)
				}
				pub, err := site.Publication(t.Context(), store.Config{Base: base, Taggers: []millrace.Tagger{tagger}})
				if err == nil {
					_, err = pub.Refresh(t.Context(), store.Lease{}, 0, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				v, err := pub.Head(t.Context())
				if err != nil || v.Site().Pages != 40 {
					t.Errorf("%v: %d pages are published", err, v.Site().Pages)
				}
			}
			publish()
			for i, c := range []struct{ repair, found bool }{{false, false}, {false, true}, {true, true}, {true, false}} {
				if i == 1 {
					exec(t, server, name, statement)
				}
				st := openStore(t, dsn, nil)
				found := false
				_, err := st.Verify(t.Context(), c.repair, func(at string, err error, repaired bool) {
					found = found || strings.HasPrefix(at, damage)
					if millrace.ErrorCode(err) != "store-damaged" || repaired != c.repair {
						t.Errorf("%q: %v, repaired: %t", at, err, repaired)
					}
				})
				if err != nil || found != c.found {
					t.Fatalf("round %d: found: %t, %v", i, found, err)
				}
			}
			publish()
		})
	}
}
