package web

import (
	"strings"
	"testing"
	"time"
)

// If a site splits its sitemaps differently and names the new ones in robots.txt, the reader
// loses no page, although it has cached robots.txt.
func TestReadShards(t *testing.T) {
	var paths []string
	for _, name := range strings.Fields("a b c d e f g h i j k l") {
		paths = append(paths, "/"+name)
	}
	for _, c := range []struct {
		name          string
		before, after map[string][]string
	}{
		{"one more", map[string][]string{"/s1.xml": paths[:6], "/s2.xml": paths[6:]}, map[string][]string{"/s1.xml": paths[:5], "/s2.xml": paths[6:], "/s3.xml": paths[5:6]}},
		{"one becomes two", map[string][]string{"/s1.xml": paths}, map[string][]string{"/s1.xml": paths[:11], "/s2.xml": paths[11:]}},
		{"the usual one", map[string][]string{"/sitemap.xml": paths}, map[string][]string{"/sitemap.xml": paths[:11], "/more.xml": paths[11:]}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(paths...)
			cp := &copied{site: s, now: otherDay.Add(48 * time.Hour)}
			name := func(lists map[string][]string) {
				s.lists, s.robots = lists, "User-agent: *\nDisallow:\n"
				for at := range lists {
					if at != "/sitemap.xml" || len(lists) > 1 {
						s.robots += "Sitemap: " + goodSite + at + "\n"
					}
				}
			}
			name(c.before)
			cp.sync(t)
			cp.holds(t)
			name(c.after)
			for range 2 {
				cp.now = cp.now.Add(time.Hour)
				if rep, _ := cp.sync(t); rep.Deleted+rep.UnconfirmedDeletions > 0 {
					t.Errorf("%d pages deleted, %d unconfirmed", rep.Deleted, rep.UnconfirmedDeletions)
				}
				cp.holds(t)
			}
		})
	}
}
