package extract

import (
	"cmp"
	"strings"
	"sync"
)

// SiteNames determines the name of a site from its pages. The zero value is ready to use. Its
// methods are safe for concurrent use.
type SiteNames struct {
	mu    sync.Mutex
	home  string         // name that the home page declares
	pages int            // number of pages with a name or a title of several parts
	votes map[string]int // number of pages by name
}

// maxNames is the maximum number of different names that are counted.
const maxNames = 1000

// Add adds a page. home reports whether it is the home page.
func (s *SiteNames) Add(r *Result, home bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if home {
		s.home = r.SiteName
	}
	names := r.titleEnds
	if r.SiteName != "" {
		names = []string{r.SiteName}
	}
	if len(names) == 0 {
		return
	}
	if s.votes == nil {
		s.votes = make(map[string]int)
	}
	s.pages++
	for _, n := range names {
		if len(s.votes) < maxNames || s.votes[n] > 0 {
			s.votes[n]++
		}
	}
}

// Name returns the name that the home page declares, else the name that most pages declare or have
// at an end of their titles. If no name has a majority, it returns "".
func (s *SiteNames) Name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.home != "" {
		return s.home
	}
	best := ""
	for n, v := range s.votes {
		if v > s.votes[best] || v == s.votes[best] && n < best {
			best = n
		}
	}
	if n := s.votes[best]; n < 2 || 2*n <= s.pages {
		return ""
	}
	return best
}

// names reads the name of the site that the page declares, and the first and last parts of its
// title.
func (m *meta) names() {
	if name := oneLine(cmp.Or(m.firstNamed("og:site_name"), m.thingName("WebSite"))); !isTemplate(name) && len(name) <= 200 {
		m.res.SiteName = name
	}
	first, last := len(m.c.title), -1
	end := 0 // end of the last separator
	for _, sep := range separators {
		if i := strings.Index(m.c.title, sep); i >= 0 && i < first {
			first = i
		}
		if i := strings.LastIndex(m.c.title, sep); i > last {
			last, end = i, i+len(sep)
		}
	}
	if last < 0 {
		return
	}
	for _, n := range []string{m.c.title[end:], m.c.title[:first]} {
		if n = oneLine(n); n != "" && len(n) <= 200 {
			m.res.titleEnds = append(m.res.titleEnds, n)
		}
	}
}
