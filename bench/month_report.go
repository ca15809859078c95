package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// end prints the results of the month.
func (m *month) end() {
	html := m.ways[1]
	fmt.Printf("%d days of %s; %s pages changed or new. Compressed one by one (brotli), they take: content as JSON, "+
		"%s bytes; its Markdown %s; its HTML %s.\n\n",
		m.days, m.name, bytesOf(m.minimum.pages), bytesOf(m.minimum.content), bytesOf(m.minimum.text), bytesOf(m.minimum.document))
	fmt.Println("| refreshes | requests | bodies | header fields | of the minimum | of the same pages' HTML | of conditional HTML | stale or lost | deleted, still in the mirror | longest | time |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	for _, w := range m.ways {
		all := w.rest.total()
		fmt.Println("| " + strings.Join([]string{
			w.title(), bytesOf(w.rest.requests), bytesOf(w.rest.bodies), bytesOf(w.rest.headers),
			quotient(all, m.minimum.content), quotient(all, m.minimum.document), "1/" + quotient(html.rest.total(), all),
			fmt.Sprint(w.wrong), fmt.Sprint(w.lingered), fmt.Sprintf("%d days", w.worst), fmt.Sprintf("%.1f s", w.rest.took.Seconds()),
		}, " | ") + " |")
	}
	fmt.Println()
	fmt.Println("| first sync | requests | bodies | header fields | of HTML | time |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, w := range m.ways {
		fmt.Println("| " + strings.Join([]string{
			w.title(), bytesOf(w.first.requests), bytesOf(w.first.bodies), bytesOf(w.first.headers),
			"1/" + quotient(html.first.total(), w.first.total()), fmt.Sprintf("%.1f s", w.first.took.Seconds()),
		}, " | ") + " |")
	}
	fmt.Println()
	for _, w := range m.ways {
		w.profile()
	}
	m.aims()
}

// aims adds the rows with targets.
func (m *month) aims() {
	html, w := m.ways[1].rest.total(), m.ways[len(m.ways)-1]
	what := fmt.Sprintf("%d days of %s, %d pages changed or new: bodies and header fields of %s", m.days, m.name, m.minimum.pages, w.title())
	ours := w.rest.total()
	per := float64(html) / float64(ours)
	m.add(row{
		what: what, limit: bytesOf(html) + " bytes (HTML, conditional requests)", ours: bytesOf(ours) + " bytes",
		ratio: fmt.Sprintf("1/%.1f", per), reach: "at most 1/50", good: per >= 50,
	})
	for _, l := range []struct {
		what  string
		bytes int64
		reach float64
	}{
		{"HTML of the pages that a sitemap.xml with correct dates lists as changed", m.ways[2].rest.total(), .19},
		{"each changed page compressed by itself", m.minimum.content, .28},
	} {
		of := float64(ours) / float64(l.bytes)
		m.add(row{
			what: "the same", limit: bytesOf(l.bytes) + " bytes (" + l.what + ")", ours: bytesOf(ours) + " bytes",
			ratio: fmt.Sprintf("%.3f", of), reach: fmt.Sprintf("at most %.2f", l.reach), good: of <= l.reach,
		})
	}
	m.add(row{
		what: "the same: pages that were stale or lost at the end of a day, or deleted but still in the mirror", limit: "0",
		ours: fmt.Sprintf("%d and %d, a deleted page at most for %d days", w.wrong, w.lingered, w.worst), reach: "0", good: w.wrong+w.lingered == 0,
	})
	var sum, count [2]int64 // bytes and number of days, without and with a change of the template
	for i, c := range w.days {
		k := 0
		if m.looks[i+1] {
			k = 1
		}
		sum[k], count[k] = sum[k]+c.total(), count[k]+1
	}
	if count[1] == 0 {
		return
	}
	plain, redesigned := float64(sum[0])/float64(count[0]), float64(sum[1])/float64(count[1])
	m.add(row{
		what:  fmt.Sprintf("the same: a day on which all %d pages also got a new template", len(m.html.pages)-1), // minus 1 for the sitemap
		limit: fmt.Sprintf("%.0f bytes (the mean of the other days)", plain), ours: fmt.Sprintf("%.0f bytes", redesigned),
		ratio: fmt.Sprintf("%.2f", redesigned/plain), reach: "about 1", good: redesigned < 1.5*plain,
	})
}

// title returns the name of a way. If pull chooses the way, title adds its first and last choice.
func (w *monthWay) title() string {
	if w.choice {
		name := w.name + ", which chooses " + w.level
		if w.via != w.level {
			name += ", and in the end " + w.via
		}
		return name
	}
	return w.name
}

// quotient formats a/b.
func quotient(a, b int64) string { return fmt.Sprintf("%.2f", float64(a)/float64(b)) }

// bytesOf formats a count with thousands separators.
func bytesOf(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// profile prints the bytes of a way, by kind of document and by header field, to standard error.
func (w *monthWay) profile() {
	fmt.Fprintf(os.Stderr, "\n%s: %d requests, bodies %d, headers %d; wrong on days %v\n", w.title(), w.rest.requests, w.rest.bodies, w.rest.headers, w.wrongDays)
	for _, kind := range slices.Sorted(maps.Keys(w.rest.parts)) {
		p := w.rest.parts[kind]
		fmt.Fprintf(os.Stderr, "  %8d bodies %8d headers %6d requests, %d of them 304  %s\n", p.bodies, p.headers, p.requests, p.unmodified, kind)
	}
	for _, name := range slices.SortedFunc(maps.Keys(w.rest.fields), func(a, b string) int { return int(w.rest.fields[b] - w.rest.fields[a]) }) {
		fmt.Fprintf(os.Stderr, "  %8d  %s\n", w.rest.fields[name], name)
	}
	for _, u := range slices.Sorted(maps.Keys(w.unequal)) {
		fmt.Fprintf(os.Stderr, "  differs: %s%s\n", u, w.unequal[u])
	}
}
