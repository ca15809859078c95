package sitelist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// read reads sources, and returns the URLs.
func read(t *testing.T, stdin io.Reader, sources ...string) (*List, []string) {
	t.Helper()
	client := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true}).HTTP()
	l, err := Read(t.Context(), client, stdin, sources)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	var urls []string
	for u, err := range l.URLs() {
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, u)
	}
	return l, urls
}

// file writes a file with a list.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Lists have many formats, which are detected by their content. Each invalid entry is reported with
// its line and rule.
func TestRead(t *testing.T) {
	t.Parallel()
	const a, b = "https://a.example/", "https://b.example/x/"
	for _, tt := range []struct {
		name, text string
		urls       []string
		wrong      []InvalidEntry
	}{
		{"lines", "\ufeff# sites\r\nhttps://A.example\r\n\n  b.example/x/y.html \nhttps://a.example/", []string{a, b, a}, nil},
		{"no line end", a, []string{a}, nil},
		{
			"wrong lines", a + "\nftp://x.example/\nhttps://u:secret@x.example/\nhello\n" + strings.Repeat("x", 100_000) + "\n" + b + "\n",
			[]string{a, b},
			[]InvalidEntry{{"", 2, "bad-scheme", ""}, {"", 3, "url-credentials", ""}, {"", 4, "bad-url", ""}, {"", 5, "line-size", ""}},
		},
		{
			"OPML", "<?xml version=\"1.0\"?>\n<opml version=\"2.0\"><body><outline text=\"news\">\n<outline text=\"A\" xmlUrl=\"https://f.example/feed\" htmlUrl=\"https://a.example/\"/>\n" +
				"<outline xmlUrl=\"https://b.example/feed.xml\"/>\n<outline xmlUrl=\"gopher://c/\"/></outline></body></opml>",
			[]string{a, "https://b.example/"},
			[]InvalidEntry{{"", 5, "bad-scheme", ""}},
		},
		{
			"sitemap", `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://a.example/</loc></url><url><loc>https://b.example/x/</loc></url></urlset>`,
			[]string{a, b},
			nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name := file(t, tt.text)
			for i := range tt.wrong {
				tt.wrong[i].Source = name
			}
			l, urls := read(t, nil, name)
			for i := range l.Entries {
				if l.Entries[i].Error == "" || strings.Contains(l.Entries[i].Error, "secret") {
					t.Errorf("%+v", l.Entries[i])
				}
				l.Entries[i].Error = ""
			}
			if d := cmp.Diff([]any{tt.urls, tt.wrong, len(tt.urls), len(tt.wrong)}, []any{urls, l.Entries, l.Sites, l.Invalid}); d != "" {
				t.Error(d)
			}
		})
	}
}

// Arguments are sites, files, URLs of lists, and standard input.
func TestSources(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	answer := func(path, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	loc := func(kind string, urls ...string) (text string) {
		for _, u := range urls {
			text += "<" + kind + "><loc>" + u + "</loc></" + kind + ">"
		}
		return text
	}
	index := func(urls ...string) string { return "<sitemapindex>" + loc("sitemap", urls...) + "</sitemapindex>" }
	answer("/index.xml", index(server.URL+"/more.xml", server.URL+"/index.xml", server.URL+"/absent.xml", server.URL+"/one.xml"))
	answer("/more.xml", index(server.URL+"/two.xml"))
	answer("/one.xml", "<urlset>"+loc("url", "https://one.example/")+"</urlset>")
	answer("/two.xml", "<urlset>"+loc("url", "https://two.example/a.html")+"</urlset>")
	answer("/list.txt", "https://three.example/\n")
	for i := range 10 {
		answer(fmt.Sprintf("/deep%d.xml", i), index(fmt.Sprintf("%s/deep%d.xml", server.URL, i+1)))
	}
	l, urls := read(t, strings.NewReader("https://four.example/\n"), server.URL+"/index.xml", server.URL+"/list.txt", "-", "five.example", "wrong://x", "absent file", "absent.csv", "", server.URL+"/deep0.xml")
	if slices.Sort(urls); !slices.Equal(urls, []string{
		"https://five.example/", "https://four.example/", "https://one.example/", "https://three.example/", "https://two.example/",
	}) || l.Rules["http-404"] != 1 || l.Rules["bad-scheme"] != 1 || l.Rules["too-large"] != 1 || l.Rules["file-not-found"] != 2 || l.Rules["invalid"] != 1 || l.Invalid != 6 {
		t.Errorf("%q, %+v", urls, l.Report)
	}
	client := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true}).HTTP()
	for source, want := range map[string]error{
		server.URL + "/absent.txt": millrace.ErrNotFound, file(t, "<html>"): millrace.ErrInvalid, file(t, "<opml></opml>"): millrace.ErrInvalid,
		file(t, ""): millrace.ErrInvalid, file(t, "h\x00t\x00"): millrace.ErrInvalid, t.TempDir(): millrace.ErrInvalid, file(t, "<opml><outline text='folder'/></opml>"): millrace.ErrInvalid,
	} {
		if _, err := Read(t.Context(), client, nil, []string{source}); !errors.Is(err, want) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// A long list with many wrong lines has a short report. All of its sites are in the store, or
// none.
func TestLong(t *testing.T) {
	t.Parallel()
	n := testkit.Size(2_000, 10_000, 1_000_000)
	var text bytes.Buffer
	for i := range n {
		if fmt.Fprintf(&text, "https://h%d.example/\n", i); i%2 == 0 {
			fmt.Fprintf(&text, "wrong %d\n", i)
		}
	}
	l, urls := read(t, nil, file(t, text.String()))
	if len(urls) != n || l.Invalid != n/2 || len(l.Entries) != maxSample || l.Entries[1].Line != 5 {
		t.Errorf("%d sites, %+v", len(urls), l.Report)
	}
	var out bytes.Buffer
	if l.WriteText(&out, "added", true); out.Len() > 4000 || !strings.Contains(out.String(), "--skip-invalid") {
		t.Errorf("%s", out.Bytes())
	}
	out.Reset()
	if l.WriteText(&out, "paused", true); strings.Contains(out.String(), "--skip-invalid") || strings.Contains(out.String(), "added") {
		t.Errorf("%s", out.Bytes())
	}
	st := memory.New(nil)
	fleet := st.Fleet()
	if _, _, err := fleet.Put(t.Context(), l.With(store.FleetSite{Labels: []string{"NO"}})); !errors.Is(err, millrace.ErrInvalid) {
		t.Error(err)
	}
	added, _, err := fleet.Put(t.Context(), l.With(store.FleetSite{Labels: []string{"long"}}))
	if err != nil || added != n {
		t.Errorf("%d, %v", added, err)
	}
	pause := func(l *List) {
		t.Helper()
		if err := l.Each(t.Context(), st, Choice{Label: "long"}, func(q store.FleetQuery) (int, error) { return fleet.Pause(t.Context(), q, true) }); err != nil {
			t.Error(err)
		}
	}
	if pause(l); l.Changed != 0 {
		t.Errorf("%d changed by a list with invalid entries", l.Changed)
	}
	l, _ = read(t, strings.NewReader(strings.Join(urls, "\n")), "-")
	if pause(l); l.Changed != n || l.Invalid != 0 {
		t.Errorf("%d changed, %d wrong", l.Changed, l.Invalid)
	}
}

// A command for sites changes nothing if an entry matches no site, or no site has the label.
func TestEach(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	fleet := st.Fleet()
	a, b, gone := "https://a.example/", "https://b.example/", "https://gone.example/"
	if _, _, err := fleet.Put(t.Context(), unlisted([]string{a, b})); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fleet.Put(t.Context(), func(yield func(store.FleetSite, error) bool) {
		yield(store.FleetSite{URL: a, Labels: []string{"x"}}, nil)
	}); err != nil {
		t.Fatal(err)
	}
	if err := st.Costs().Add(t.Context(), gone, "tct-01", store.Traffic{Pulls: 1}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sources []string
		choice  Choice
		calls   []store.FleetQuery
		wrong   []string
		err     error
	}{
		{nil, Choice{Label: "x"}, []store.FleetQuery{{Label: "x"}}, nil, nil},
		{nil, Choice{Label: "y"}, nil, nil, millrace.ErrNotFound},
		{[]string{a, b}, Choice{}, []store.FleetQuery{{Sites: []string{a, b}}}, nil, nil},
		{[]string{a, b}, Choice{Label: "x"}, nil, []string{b}, nil},
		{[]string{a, gone, b}, Choice{}, nil, []string{gone}, nil},
		{[]string{a, gone, "https://c.example/"}, Choice{Pages: true}, nil, []string{"https://c.example/"}, nil},
		{[]string{a, "ftp://x"}, Choice{}, nil, []string{"ftp://x"}, nil},
		{[]string{gone}, Choice{Pages: true}, []store.FleetQuery{{Sites: []string{gone}}}, nil, nil},
		{[]string{gone}, Choice{}, []store.FleetQuery{{Sites: []string{gone}}}, nil, nil}, // the last one has added it
	} {
		l, _ := read(t, nil, c.sources...)
		var calls []store.FleetQuery
		err := l.Each(t.Context(), st, c.choice, func(q store.FleetQuery) (int, error) {
			calls = append(calls, q)
			return 1, nil
		})
		var wrong []string
		for _, e := range l.Entries {
			wrong = append(wrong, e.Source)
		}
		if !errors.Is(err, c.err) || !cmp.Equal(calls, c.calls) || !slices.Equal(wrong, c.wrong) || l.Changed != len(calls) {
			t.Errorf("%q, %+v: %v, %v, %q", c.sources, c.choice, err, calls, wrong)
		}
	}
}

// The list of a fleet is one JSON value, or a line for each site.
func TestWrite(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	fleet := memory.New(&store.Options{Now: func() time.Time { return now }}).Fleet()
	l, _ := read(t, nil, "https://a.example/", "https://b.example/")
	if _, _, err := fleet.Put(t.Context(), l.With(store.FleetSite{Labels: []string{"x"}, Priority: store.PriorityLow, Max: 90 * time.Minute, Webhook: "https://hook.example/?secret"})); err != nil {
		t.Fatal(err)
	}
	if _, err := fleet.Pause(t.Context(), store.FleetQuery{Sites: []string{"https://b.example/"}}, true); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	stats, err := fleet.Stats(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var got struct {
		Fleet Fleet
		Sites []Site
	}
	if err := Write(&out, stats, fleet.Sites(t.Context(), store.FleetQuery{}), now, true); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Fleet.Sites != 2 || got.Fleet.LagMax != 60 || len(got.Sites) != 2 || got.Sites[0].State != "new" ||
		got.Sites[0].Lag != 60 || got.Sites[1].State != "paused" || got.Sites[1].Lag != 0 {
		t.Errorf("%v: %s", err, out.Bytes())
	}
	turns, _, err := fleet.Lease(t.Context(), "w", 1, time.Minute, nil)
	if err != nil || len(turns) != 1 {
		t.Fatalf("%v, %v", turns, err)
	}
	if err := fleet.Done(t.Context(), turns[0].Lease, "https://a.example/", store.TurnResult{Due: now.Add(time.Hour), Until: now.Add(time.Hour), Error: "http-503", Requests: 7}); err != nil {
		t.Fatal(err)
	}
	if stats, err = fleet.Stats(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	sum, err := SummaryOf(t.Context(), fleet, "x", &stats)
	if err != nil || sum.Requests != 7 || !slices.Equal(sum.Codes(), []Code{{"http-503", 1}}) || len(sum.Worst) != 1 || sum.Worst[0].Failures != 1 || sum.Worst[0].Sites != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	if sum.WriteText(&out); strings.Count(out.String(), "a.example") != 2 {
		t.Errorf("%s", out.Bytes())
	}
	if sum, err := SummaryOf(t.Context(), fleet, "y", new(store.FleetStats)); sum != nil || err != nil {
		t.Errorf("%+v, %v", sum, err)
	}
	out.Reset()
	if err := Write(&out, stats, fleet.Sites(t.Context(), store.FleetQuery{}), now, false); err != nil || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%v: %s", err, out.Bytes())
	}
	for _, setting := range []string{"x", "priority=low", "max-interval=1h30m0s", "webhook=https://hook.example"} {
		if strings.Count(out.String(), setting) < 2 || strings.Contains(out.String(), "secret") {
			t.Errorf("%s: %s", setting, out.Bytes())
		}
	}
}
