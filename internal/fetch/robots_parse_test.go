package fetch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// allowedTargets returns the allowed targets of a list.
func allowedTargets(r *Robots, targets string) string {
	var out []string
	for _, target := range strings.Fields(targets) {
		if r.Allowed(target) {
			out = append(out, target)
		}
	}
	return strings.Join(out, " ")
}

// TestRobotsOfTheRFC has the examples of RFC 9309, section 5, and the merging of section
// 2.2.1.
func TestRobotsOfTheRFC(t *testing.T) {
	const simple = `User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
`
	const targets = "/ /a.gif /a.gif?b /example/page.html /example/allowed.gif /example/ /publications/a /publications/a.gif"
	for token, want := range map[string]string{
		"other":  "/ /a.gif?b /publications/a /publications/a.gif",
		"foobot": "/example/page.html /example/allowed.gif",
		"FooBot": "/example/page.html /example/allowed.gif",
		"barbot": "/ /a.gif /a.gif?b /example/allowed.gif /example/ /publications/a /publications/a.gif",
		"bazbot": "/ /a.gif /a.gif?b /example/allowed.gif /example/ /publications/a /publications/a.gif",
		"quxbot": targets,
		"foo":    "/ /a.gif?b /publications/a /publications/a.gif",
		"":       "/ /a.gif?b /publications/a /publications/a.gif",
	} {
		if got := allowedTargets(ParseRobots([]byte(simple), token), targets); got != want {
			t.Errorf("%s is allowed %q, want %q", token, got, want)
		}
	}
	longest := ParseRobots([]byte("User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"), "foobot")
	if got := allowedTargets(longest, "/example/page/ /example/page/disallowed.gif /example/page/x.gif"); got != "/example/page/ /example/page/x.gif" {
		t.Error(got)
	}
	merged := ParseRobots([]byte("user-agent: examplebot\ndisallow: /foo\ndisallow: /bar\n\nuser-agent: *\ndisallow: /all\n\nuser-agent: EXAMPLEBOT\ndisallow: /baz\n"), "ExampleBot")
	if got := allowedTargets(merged, "/foo /bar /baz /all /"); got != "/all /" {
		t.Error(got)
	}
}

// TestRobotsMatching tests one rule at a time: the tables of RFC 9309, sections 2.2.2 and
// 2.2.3, and Google's documented examples for paths.
func TestRobotsMatching(t *testing.T) {
	for pattern, c := range map[string]struct{ matches, not string }{
		// Percent-encoding.
		"/foo/bar?baz=quz":               {"/foo/bar?baz=quz /foo/bar?baz=quz&x", "/foo/bar /foo/bar%3Fbaz=quz"},
		"/foo/bar?baz=https://foo.bar":   {"/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"},
		"/f?b=https%3A%2F%2Ffoo.bar":     {"/f?b=https%3A%2F%2Ffoo.bar /f?b=https%3a%2f%2ffoo.bar", "/f?b=https://foo.bar"},
		"/foo/bar/\u30c4":                {"/foo/bar/%E3%83%84 /foo/bar/%e3%83%84 /foo/bar/\u30c4x", "/foo/bar/%E3%83%85"},
		"/foo/bar/%E3%83%84":             {"/foo/bar/%E3%83%84 /foo/bar/\u30c4", "/foo/bar/"},
		"/foo/bar/%62%61%7A":             {"/foo/bar/baz /foo/bar/%62%61%7a", "/foo/bar/BAZ"},
		"/foo/bar/baz":                   {"/foo/bar/%62%61%7A", "/foo%2Fbar%2Fbaz"},
		"/a b\"<>^`{|}\\":                {"/a%20b%22%3C%3E%5E%60%7B%7C%7D%5C", "/a+b"},
		"/100%":                          {"/100%25 /100%", "/100"},
		"/%zz":                           {"/%25zz /%zz", "/zz"},
		"/\xff\xfe":                      {"/%FF%FE /\xff\xfe", "/%EF%BF%BD"},
		"/path/file-with-a-%2A.html":     {"/path/file-with-a-*.html /path/file-with-a-%2a.html", "/path/file-with-a-b.html"},
		"/path/foo-%24":                  {"/path/foo-$ /path/foo-%24bar", "/path/foo-"},
		"/a$b":                           {"/a$b /a%24bc", "/a /a$"},
		"/a$$":                           {"/a$", "/a /a$b"},
		"/allow/this":                    {"/allow/this /allow/this/x", "/allow /Allow/this"},
		"/path/foo$":                     {"/path/foo", "/path/foo/ /path/foo?a"},
		"/this/*/exactly":                {"/this/is/exactly /this//exactly /this/a/b/exactly/c", "/this/exactly"},
		"/*/*/*.a*b$":                    {"/x/y/z.ab /x/y/z.a/.a/b", "/x/y/z.abc /x/z.ab"},
		"/ends*$":                        {"/ends /endsx", "/end"},
		"*":                              {"/ /x", ""},
		"*.gif":                          {"/a.gif /a/b.gifs", "/gif"},
		"/a**b":                          {"/ab /axxb", "/ba"},
		"fish":                           {"", "/fish /"}, // not a valid start of a pattern
		"https://site.example/secret":    {"", "/secret /"},
		"$":                              {"", "/ /x"},
		"/$":                             {"/", "/index.html /?a"},
		"/":                              {"/ /x /x/y?z", ""},
		"/*":                             {"/ /x /x/y?z", ""},
		"/fish":                          {"/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.php?id=anything", "/Fish.asp /catfish /?id=fish /desert/fish"},
		"/fish*":                         {"/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.php?id=anything", "/Fish.asp /catfish /?id=fish /desert/fish"},
		"/fish/":                         {"/fish/ /fish/?id=anything /fish/salmon.htm", "/fish /fish.html /animals/fish/ /Fish/Salmon.asp"},
		"/*.php":                         {"/index.php /filename.php /folder/filename.php /folder/filename.php?parameters /folder/any.php.file.html /filename.php/", "/ /windows.PHP"},
		"/*.php$":                        {"/filename.php /folder/filename.php", "/filename.php?parameters /filename.php/ /filename.php5 /windows.PHP"},
		"/fish*.php":                     {"/fish.php /fishheads/catfish.php?parameters", "/Fish.PHP"},
		"/x" + strings.Repeat("y", 5000): {"/x" + strings.Repeat("y", 5001), "/xy"},
	} {
		r := ParseRobots([]byte("user-agent: *\ndisallow: "+pattern+"\n"), "millrace")
		if got := allowedTargets(r, c.matches); got != "" {
			t.Errorf("%.100q does not match %.100s", pattern, got)
		}
		if got := allowedTargets(r, c.not); got != c.not {
			t.Errorf("%.100q matches some of %q, not only %q", pattern, c.not, got)
		}
		if !r.Allowed("/robots.txt") {
			t.Errorf("%.100q disallows /robots.txt", pattern)
		}
	}
}

// TestRobotsPrecedence tests which of several rules applies (RFC 9309, section 2.2.2, and
// Google's documented examples).
func TestRobotsPrecedence(t *testing.T) {
	for _, c := range []struct {
		allow, disallow, target string
		want                    bool
	}{
		{"/p", "/", "/page", true},
		{"/folder", "/folder", "/folder/page", true},
		{"/page", "/*.htm", "/page.htm", false},
		{"/page", "/*.ph", "/page.php5", true},
		{"/$", "/", "/", true},
		{"/$", "/", "/page.htm", false},
		{"/x/", "/x/page.html", "/x/page.html", false},
		{"/x/page.html", "/x/", "/x/page.html", true},
		{"/x/page.html", "/x/", "/x/", false},
		{"", "", "/x", true},
		{"", "/", "/x", false},
		{"/x/", "/x", "/x", false},
		{"/x/", "/x", "/x/y", true},
		{"/x/page.", "/*.html", "/x/page.html", true},
	} {
		for _, file := range []string{
			"user-agent: *\nallow: " + c.allow + "\ndisallow: " + c.disallow,
			"user-agent: *\ndisallow: " + c.disallow + "\nallow: " + c.allow,
		} {
			if got := ParseRobots([]byte(file), "millrace").Allowed(c.target); got != c.want {
				t.Errorf("%s of %q: %t", c.target, file, got)
			}
		}
	}
}

// TestRobotsGroups tests how lines form records, and records form groups.
func TestRobotsGroups(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{ // which of /a, /b and /c are allowed
		"empty":                    {"", "/a /b /c"},
		"no group":                 {"disallow: /a", "/a /b /c"},
		"rules before the first":   {"disallow: /a\nuser-agent: *\ndisallow: /b", "/a /c"},
		"two names":                {"user-agent: x\nuser-agent: millrace\ndisallow: /a\nuser-agent: y\ndisallow: /b", "/b /c"},
		"others between names":     {"user-agent: x\nsitemap: https://site.example/s\nhost: y\n\nunknown\nuser-agent: *\ndisallow: /a", "/b /c"},
		"delay between names":      {"user-agent: millrace\ncrawl-delay: 1\nuser-agent: x\ndisallow: /a", "/b /c"},
		"empty lines in a group":   {"user-agent: *\n\n\ndisallow: /a\n\ndisallow: /b", "/c"},
		"own without rules":        {"user-agent: millrace\nuser-agent: *\nallow: /\nuser-agent: *\ndisallow: /a\nuser-agent: millrace", "/a /b /c"},
		"own before all":           {"user-agent: *\ndisallow: /\nuser-agent: millrace\ndisallow: /a", "/b /c"},
		"nothing disallowed":       {"user-agent: *\ndisallow:", "/a /b /c"},
		"an empty rule ends names": {"user-agent: *\ndisallow:\nuser-agent: x\ndisallow: /a", "/a /b /c"},
		"with a version":           {"user-agent: Millrace/1.2\ndisallow: /a", "/b /c"},
		"with more words":          {"user-agent: millrace robot\ndisallow: /a", "/b /c"},
		"another product":          {"user-agent: millracer\ndisallow: /a\nuser-agent: mill\ndisallow: /b\nuser-agent: millrace2\ndisallow: /c", "/a /b /c"},
		"star with words after it": {"user-agent: * (all)\ndisallow: /a", "/b /c"},
		"star in a name":           {"user-agent: *bot\ndisallow: /a", "/a /b /c"},
		"case of names":            {"USER-AGENT: MILLRACE\nDISALLOW: /a\nDisAllow: /B", "/b /c"},
		"white space":              {"\t user-agent \t:\t * \t\n  disallow\t:/a \n disallow  :  /b", "/c"},
		"comments":                 {"# all\nuser-agent: * # all\ndisallow: /a#b\ndisallow: # /c\n#disallow: /b", "/b /c"},
		"CR":                       {"user-agent: *\rdisallow: /a\rdisallow: /b", "/c"},
		"CRLF":                     {"user-agent: *\r\ndisallow: /a\r\n\r\ndisallow: /b\r\n", "/c"},
		"byte order mark":          {"\ufeffuser-agent: *\ndisallow: /a", "/b /c"},
		"no colon":                 {"user-agent *\ndisallow /a\nuser-agent: *\ndisallow: /b", "/a /c"},
		"colon in a value":         {"user-agent: *\ndisallow: /a:b\ndisallow: /c", "/a /b"},
		"invalid UTF-8":            {"user-agent: *\n\xff\xfe: \xff\ndisallow: /a\ndisallow: /\xff\n", "/b /c"},
		"NUL":                      {"user-agent: *\n\x00\ndisallow: /a\ndisallow: /\x00b", "/b /c"},
		"HTML":                     {"\n<!DOCTYPE html>\n<title>Log in</title>\nuser-agent: *\ndisallow: /", "/a /b /c"},
		"HTML, byte order mark":    {"\ufeff<html><body>\nuser-agent: *\ndisallow: /", "/a /b /c"},
		"both named":               {"user-agent: *\nuser-agent: millrace\ndisallow: /a\nuser-agent: *\ndisallow: /b", "/b /c"},
		"bytes after the limit":    {"user-agent: *\ndisallow: /a\n#" + strings.Repeat("x", maxRobots) + "\ndisallow: /b", "/b /c"},
		"an incomplete line":       {"user-agent: *\n" + strings.Repeat("#", maxRobots-14-len("\ndisallow: /")) + "\ndisallow: /c/d\n", "/a /b /c"},
	} {
		r := ParseRobots([]byte(c.file), "millrace")
		if got := allowedTargets(r, "/a /b /c"); got != c.want {
			t.Errorf("%s: allowed %q, want %q", name, got, c.want)
		}
	}
	var none *Robots
	if line, rule := none.Rule("/"); !none.Allowed("/") || line != 0 || rule != "" || none.CrawlDelay() != 0 || none.Sitemaps() != nil {
		t.Error("nil has rules")
	}
}

func TestRobotsRule(t *testing.T) {
	r := ParseRobots([]byte("# us\r\nuser-agent: *\r\n\r\n  DISALLOW :  /private  # no\r\ndisallow: /"+strings.Repeat("é", 300)+"\r\ndisallow: /x\x1b[1m\xff*\r\nallow: /private/open"), "millrace")
	for target, want := range map[string]string{
		"/private":                          "4 Disallow: /private",
		"/private/open":                     "0 ",
		"":                                  "0 ",
		"/" + strings.Repeat("%C3%A9", 301): "5 Disallow: /" + strings.Repeat("é", 199) + "…",
		"/x%1b[1m%ff":                       "6 Disallow: /x\ufffd[1m\ufffd*",
	} {
		line, rule := r.Rule(target)
		if got := fmt.Sprint(line, " ", rule); got != want || r.Allowed(target) != (line == 0) {
			t.Errorf("%s: %q", target, got)
		}
	}
}

func TestRobotsDelayAndSitemaps(t *testing.T) {
	for file, want := range map[string]time.Duration{
		"user-agent: *\ncrawl-delay: 2":                                             2 * time.Second,
		"user-agent: *\ncrawl-delay: 0.5 # half":                                    500 * time.Millisecond,
		"user-agent: *\ncrawl-delay: 60":                                            time.Minute,
		"user-agent: *\ncrawl-delay: 3600":                                          time.Minute,
		"user-agent: *\ncrawl-delay: 1e300":                                         time.Minute,
		"user-agent: *\ncrawl-delay: inf":                                           time.Minute,
		"user-agent: *\ncrawl-delay: NaN\ncrawl-delay: -1\ncrawl-delay: x":          0,
		"user-agent: *\ncrawl-delay:":                                               0,
		"user-agent: *\ncrawl-delay: 3\ncrawl-delay: 1":                             3 * time.Second,
		"crawl-delay: 3":                                                            0,
		"user-agent: *\ncrawl-delay: 3\nuser-agent: millrace\ndisallow:":            0,
		"user-agent: *\ndisallow: /\ncrawl-delay: 3\nuser-agent: x\ncrawl-delay: 9": 3 * time.Second,
		"user-agent: x\ncrawl-delay: 3\nuser-agent: millrace\ndisallow: /":          0, // in the group of another product
	} {
		if got := ParseRobots([]byte(file), "millrace").CrawlDelay(); got != want {
			t.Errorf("%q: %s, want %s", file, got, want)
		}
	}
	r := ParseRobots([]byte("Sitemap: https://site.example/a.xml\nuser-agent: x\nSITEMAP : /b.xml # relative\nsitemap:\nuser-agent: *\nsitemap: https://other.example/c.xml?d=1:2"), "millrace")
	want := []string{"https://site.example/a.xml", "/b.xml", "https://other.example/c.xml?d=1:2"}
	if diff := cmp.Diff(want, r.Sitemaps()); diff != "" {
		t.Error(diff)
	}
	r.Sitemaps()[0] = ""
	if diff := cmp.Diff(want, r.Sitemaps()); diff != "" {
		t.Error(diff)
	}
}

func TestProductToken(t *testing.T) {
	for agent, want := range map[string]string{
		"millrace/1.2 (+https://site.example)": "millrace", "millrace": "millrace", "my_Bot-2.0/1": "my_Bot-2.0", "": "", "(x)": "", "Ümlaut": "",
	} {
		if got := productToken(agent); got != want {
			t.Errorf("%q: %q", agent, got)
		}
	}
}

// TestRobotsCost has input that would take very long if the cost were not linear.
func TestRobotsCost(t *testing.T) {
	stars := ParseRobots([]byte("user-agent: *\ndisallow: /"+strings.Repeat("*a", 200<<10)+"b"), "millrace")
	if !stars.Allowed("/" + strings.Repeat("a", 1<<20)) {
		t.Error("matched")
	}
	many := ParseRobots([]byte("user-agent: *\n"+strings.Repeat("disallow: *a*b*c*d$\n", 1<<20)), "millrace")
	if n := len(many.rules); n > maxRobots/20 || !many.Allowed("/"+strings.Repeat("abcd", 1<<10)+"x") {
		t.Errorf("%d rules", n)
	}
	line := ParseRobots([]byte(strings.Repeat("x", 10<<20)), "millrace")
	if !line.Allowed("/") {
		t.Error("one long line")
	}
}

// slowMatch is a reference implementation of matching that tries every split.
func slowMatch(pattern, s string, anchor bool) bool {
	if pattern == "" {
		return !anchor || s == ""
	}
	if pattern[0] == '*' {
		return slowMatch(pattern[1:], s, anchor) || s != "" && slowMatch(pattern, s[1:], anchor)
	}
	return s != "" && s[0] == pattern[0] && slowMatch(pattern[1:], s[1:], anchor)
}

func TestRobotsMatchingAtRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	word := func(letters string, n int) string {
		b := make([]byte, rnd.IntN(n))
		for i := range b {
			b[i] = letters[rnd.IntN(len(letters))]
		}
		return string(b)
	}
	hits := 0
	for range 50000 {
		r := robotsRule{pattern: word("ab*", 8), anchor: rnd.IntN(2) == 0}
		s := word("ab", 10)
		want := slowMatch(r.pattern, s, r.anchor)
		if got := r.matches(s); got != want {
			t.Fatalf("%q (anchored: %t) and %q: %t", r.pattern, r.anchor, s, got)
		}
		if want {
			hits++
		}
	}
	if hits < 1000 {
		t.Errorf("%d matched", hits)
	}
}

// FuzzRobots parses arbitrary input and compares matching with slowMatch.
func FuzzRobots(f *testing.F) {
	f.Add([]byte("User-agent: *\nDisallow: /a*b$\nAllow: /%61\nCrawl-delay: 1\nSitemap: x"), "millrace", "/aXb")
	f.Add([]byte("\ufeffuser-agent: m\r\rdisallow: *\nallow: /\xff$"), "m", "/\xff")
	f.Fuzz(func(t *testing.T, data []byte, token, target string) {
		r := ParseRobots(data, token)
		if !r.Allowed("/robots.txt") || r.CrawlDelay() < 0 || r.CrawlDelay() > maxCrawlDelay {
			t.Fatalf("delay %s", r.CrawlDelay())
		}
		line, rule := r.Rule(target)
		if (line == 0) != r.Allowed(target) || (line == 0) != (rule == "") || line > len(data)+1 || strings.ContainsAny(rule, "\r\n\x1b") {
			t.Fatalf("line %d, rule %q", line, rule)
		}
		norm := normalTarget(target, false)
		if normalTarget(norm, false) != norm || strings.ContainsAny(norm, "*$ ") {
			t.Fatalf("%q becomes %q", target, norm)
		}
		if len(data) > 60 || len(norm) > 20 {
			return // too slow for slowMatch
		}
		for i := range r.rules {
			if rule := &r.rules[i]; rule.matches(norm) != slowMatch(rule.pattern, norm, rule.anchor) {
				t.Fatalf("%q (anchored: %t) and %q", rule.pattern, rule.anchor, norm)
			}
			if normalTarget(r.rules[i].pattern, true) != r.rules[i].pattern {
				t.Fatalf("%q is not in normal form", r.rules[i].pattern)
			}
		}
	})
}

func TestFingerprint(t *testing.T) {
	of := func(text string) string { return ParseRobots([]byte(text), "millrace").Fingerprint() }
	one := of("User-agent: *\nDisallow: /a\n")
	if one == "" || of("# A comment\n\nUser-agent: *\nCrawl-delay: 1\nDisallow: /a # x\nSitemap: /s.xml\n") != one {
		t.Error("records that are not rules change the fingerprint")
	}
	for _, other := range []string{"", "User-agent: *\nDisallow: /b\n", "User-agent: *\nAllow: /a\n", "User-agent: *\nDisallow: /a$\n", "User-agent: *\nDisallow: /a\nAllow: /a/b\n"} {
		if of(other) == one {
			t.Errorf("%q has the same fingerprint", other)
		}
	}
	if (*Robots)(nil).Fingerprint() != "" || of("User-agent: *\nDisallow:\n") != of("") {
		t.Error("a file without rules has a fingerprint")
	}
}
