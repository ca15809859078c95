package canon

import (
	"net/url"
	"strings"
	"testing"
)

var urlCases = []struct{ in, want string }{ // want "" = an error
	{"https://example.com/", "https://example.com/"},
	{"https://example.com", "https://example.com/"},
	{"HTTP://Example.COM:80", "http://example.com/"},
	{"https://example.com:443/a", "https://example.com/a"},
	{"http://example.com:443/a", "http://example.com:443/a"},
	{"https://example.com:0443/", "https://example.com/"},
	{"http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x"},
	{"https://example.com:/", "https://example.com/"},
	{"https://example.com?q=1", "https://example.com/?q=1"},
	{"https://example.com/?", "https://example.com/"},
	{"https://example.com/a?b?c/../d=/./", "https://example.com/a?b?c/../d=/./"},
	{"https://example.com/a?z=1&a=2&z=%7e%2f", "https://example.com/a?z=1&a=2&z=~%2F"},
	{"https://example.com/a#b", "https://example.com/a"},
	{"https://example.com#b?c", "https://example.com/"},
	{"https://example.com/a?#b", "https://example.com/a"},
	{"https://example.com/a/./b/../c/", "https://example.com/a/c/"},
	{"https://example.com/a/b/..", "https://example.com/a/"},
	{"https://example.com/a/.", "https://example.com/a/"},
	{"https://example.com/../../a", "https://example.com/a"},
	{"https://example.com/a//b", "https://example.com/a//b"},
	{"https://example.com/a//../b", "https://example.com/a/b"},
	{"https://example.com/..a/...", "https://example.com/..a/..."},
	{"https://example.com/%2e%2E/a/%2e", "https://example.com/a/"},
	{"https://example.com/%7Ea%41%2fb", "https://example.com/~aA%2Fb"},
	{"https://example.com/é", "https://example.com/%C3%A9"},
	{"https://example.com/%e9", "https://example.com/%E9"},
	{"https://example.com/a b?c d", "https://example.com/a%20b?c%20d"},
	{"https://example.com/100%", "https://example.com/100%25"},
	{"https://example.com/%zz%4", "https://example.com/%25zz%254"},
	{`https://example.com/a\b[]{}|^"<>` + "`", "https://example.com/a%5Cb%5B%5D%7B%7D%7C%5E%22%3C%3E%60"},
	{"https://example.com/!$&'()*+,;=:@-._~", "https://example.com/!$&'()*+,;=:@-._~"},
	{"https://bücher.example/", "https://xn--bcher-kva.example/"},
	{"https://BÜCHER.example/", "https://xn--bcher-kva.example/"},
	{"https://straße.example/", "https://xn--strae-oqa.example/"},
	{"https://例え。jp/", "https://xn--r8jz45g.jp/"},
	{"https://my_site.example.com/", "https://my_site.example.com/"},
	{"https://example.com./", "https://example.com./"},
	{"https://[2001:DB8::0:1]:443/", "https://[2001:db8::1]/"},
	{"http://[::1]:8080/", "http://[::1]:8080/"},

	{"", ""},
	{"/a", ""},
	{"example.com", ""},
	{"ftp://example.com/", ""},
	{"mailto:a@example.com", ""},
	{"javascript:alert(1)", ""},
	{"https:/example.com/", ""},
	{"https:example.com", ""},
	{"https://", ""},
	{"https:///a", ""},
	{"https://user:pw@example.com/", ""},
	{"https://user@example.com/", ""},
	{"https://@example.com/", ""},
	{`https://a.example\@b.example/`, ""},
	{`https://a.example\b/`, ""},
	{"https://exa mple.com/", ""},
	{"https://ex%61mple.com/", ""},
	{"https://a..example/", ""},
	{"https://.example/", ""},
	{"https://example.com:65536/", ""},
	{"https://example.com:0/", ""},
	{"https://example.com:+80/", ""},
	{"https://example.com:8a/", ""},
	{"https://a:b:80/", ""},
	{"https://[::1/", ""},
	{"https://[::1]x/", ""},
	{"https://[fe80::1%25eth0]/", ""},
	{"https://[127.0.0.1]/", ""},
	{"https://[::1]:x/", ""},
	{"https://example.com/a\nb", ""},
	{"https://example.com/\x7f", ""},
	{"https://example.com/\x00", ""},
	{"https://example.com/\xff", ""},
	{" https://example.com/", ""},
	{"https://example.com/ ", ""},
	{"https://example.com/a\u00a0", ""},
	{"https://" + strings.Repeat("a", 255) + "/", ""},
	{"https://example.com/" + strings.Repeat("a", MaxURL), ""},
	{"https://example.com/" + strings.Repeat("é", MaxURL/4), ""},
}

func TestURL(t *testing.T) {
	for _, c := range urlCases {
		got, err := URL(c.in)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("URL(%.120q) = %q, %v; want %q", c.in, got, err, c.want)
		}
		if err != nil && len(err.Error()) > 250 {
			t.Errorf("URL(%.20q): an error of %d bytes", c.in, len(err.Error()))
		}
		if err == nil {
			holds(t, got)
		}
	}
}

// holds checks the properties that every canonical URL has.
func holds(t *testing.T, c string) {
	t.Helper()
	if again, err := URL(c); again != c {
		t.Errorf("URL(%q) = %q, %v: not canonical", c, again, err)
	}
	if !strings.Contains(c, "[") && !isCanonical(c) {
		t.Errorf("isCanonical(%q) = false", c)
	}
	if slow, err := canonicalURL(c); slow != c {
		t.Errorf("canonicalURL(%q) = %q, %v: differs from the fast path", c, slow, err)
	}
	u, err := url.Parse(c)
	if err != nil {
		t.Errorf("net/url refuses %q: %v", c, err)
		return
	}
	if u.String() != c {
		t.Errorf("net/url returns %q for %q", u, c)
	}
	if self, err := Resolve(u, ""); self != c {
		t.Errorf("Resolve(%q, \"\") = %q, %v", c, self, err)
	}
	for _, base := range []string{"https://example.com/", "https://example.com/blog/", "https://example.com/blog", c} {
		if strings.Contains(base, "?") {
			continue
		}
		id := Relative(base, c)
		if back := Absolute(base, id); back != c {
			t.Errorf("base %q: %q is %q and back %q", base, c, id, back)
		}
		if strings.HasPrefix(id, "//") {
			t.Errorf("base %q: the identity of %q is %q", base, c, id)
		}
	}
}

func TestResolve(t *testing.T) {
	// RFC 3986, section 5.4, without the schemes and fragments.
	base, err := url.Parse("http://a/b/c/d;p?q#f")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ref, want string }{
		{"g", "http://a/b/c/g"},
		{"./g", "http://a/b/c/g"},
		{"g/", "http://a/b/c/g/"},
		{"/g", "http://a/g"},
		{"//g", "http://g/"},
		{"?y", "http://a/b/c/d;p?y"},
		{"g?y", "http://a/b/c/g?y"},
		{"#s", "http://a/b/c/d;p?q"},
		{"g#s", "http://a/b/c/g"},
		{";x", "http://a/b/c/;x"},
		{"g;x=1/../y", "http://a/b/c/y"},
		{"", "http://a/b/c/d;p?q"},
		{".", "http://a/b/c/"},
		{"..", "http://a/b/"},
		{"../..", "http://a/"},
		{"../../../g", "http://a/g"},
		{"/./g", "http://a/g"},
		{"g.", "http://a/b/c/g."},
		{"..g", "http://a/b/c/..g"},
		{"./../g", "http://a/b/g"},
		{"g?y/../x", "http://a/b/c/g?y/../x"},
		{"g#s/../x", "http://a/b/c/g"},

		{"  g \n", "http://a/b/c/g"},
		{"a b", "http://a/b/c/a%20b"},
		{"a\n\tb", "http://a/b/c/ab"},
		{"http\n://b/c", "http://b/c"},
		{" https://B/é#x ", "https://b/%C3%A9"},
		{"https://b/c #x", "https://b/c%20"},
		{"1:2", "http://a/b/c/1:2"},
		{"./a:b", "http://a/b/c/a:b"},
		{"//b:80/", "http://b/"},
		{"//user@b/", ""},
		{"mailto:a@b", ""},
		{"tel:1", ""},
		{"data:text/plain," + strings.Repeat("x", 1<<16), ""},
		{"http:g", ""},
		{"javascript:void(0)", ""},
		{"a\x00b", ""},
		{"\xff", ""},
	} {
		got, err := Resolve(base, c.ref)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("Resolve(%q) = %q, %v; want %q", c.ref, got, err, c.want)
		}
	}
}

func TestResolveBase(t *testing.T) {
	for _, c := range []struct{ base, ref, want string }{
		{"https://a", "g", "https://a/g"},
		{"https://a", "?x", "https://a/?x"},
		{"https://a?q", "", "https://a/?q"},
		{"https://a/%2Fb/c", "d", "https://a/%2Fb/d"},
		{"https://[::1]:8443/x", "y", "https://[::1]:8443/y"},
		{"https://user@a/", "g", ""},
		{"https://user@a/", "https://b/", "https://b/"},
		{"mailto:a", "g", ""},
		{"/relative", "g", ""},
	} {
		base, err := url.Parse(c.base)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Resolve(base, c.ref); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("Resolve(%q, %q) = %q, %v; want %q", c.base, c.ref, got, err, c.want)
		}
	}
	if got, err := Resolve(nil, "HTTPS://a"); got != "https://a/" {
		t.Errorf("Resolve(nil, absolute) = %q, %v", got, err)
	}
	if got, err := Resolve(nil, "a"); err == nil {
		t.Errorf("Resolve(nil, relative) = %q", got)
	}
}

func TestRelative(t *testing.T) {
	for _, c := range []struct{ base, abs, want string }{
		{"https://example.com/", "https://example.com/", "/"},
		{"https://example.com/", "https://example.com/a?b", "/a?b"},
		{"https://example.com/blog/", "https://example.com/blog/", "/"},
		{"https://example.com/blog/", "https://example.com/blog/?p=1", "/?p=1"},
		{"https://example.com/blog/", "https://example.com/blog/a/", "/a/"},
		{"https://example.com/blog", "https://example.com/blog/a/", "/a/"},
		{"https://example.com/blog/", "https://example.com/blogger/", "https://example.com/blogger/"},
		{"https://example.com/blog/", "https://example.com/blog", "https://example.com/blog"},
		{"https://example.com/blog/", "https://example.com/blog?p=1", "https://example.com/blog?p=1"},
		{"https://example.com/", "https://example.com:8443/", "https://example.com:8443/"},
		{"https://example.com/", "https://example.com.evil.example/", "https://example.com.evil.example/"},
		{"https://example.com/", "http://example.com/", "http://example.com/"},
		{"https://example.com/", "https://example.com//evil.example/", "https://example.com//evil.example/"},
	} {
		got := Relative(c.base, c.abs)
		if got != c.want {
			t.Errorf("Relative(%q, %q) = %q, want %q", c.base, c.abs, got, c.want)
		}
		if back := Absolute(c.base, got); back != c.abs {
			t.Errorf("Absolute(%q, %q) = %q, want %q", c.base, got, back, c.abs)
		}
	}
}

func TestURLAllocates(t *testing.T) {
	const u = "https://example.com/blog/2025/%C3%A9t%C3%A9/?a=1"
	if n := testing.AllocsPerRun(100, func() {
		c, _ := URL(u)
		_ = Relative("https://example.com/blog/", c)
	}); n != 0 {
		t.Errorf("%v allocations for a canonical URL, want none", n)
	}
}

func FuzzURL(f *testing.F) {
	for _, c := range urlCases {
		if len(c.in) < 300 {
			f.Add(c.in, "../x?y")
		}
	}
	f.Fuzz(func(t *testing.T, s, ref string) {
		c, err := URL(s)
		if err != nil {
			return
		}
		holds(t, c)
		base, err := url.Parse(c)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Resolve(base, ref); err == nil {
			holds(t, r)
		}
	})
}

func BenchmarkURL(b *testing.B) {
	for name, u := range map[string]string{
		"canonical": "https://example.com/blog/2025/11/a-post-about-something/?page=2",
		"port":      "http://127.0.0.1:8080/blog/2025/11/a-post-about-something/",
		"mend":      "HTTPS://Example.com:443/blog/../blog/2025/11/a%2dpost/#top",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(u)))
			for b.Loop() {
				if _, err := URL(u); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkResolve(b *testing.B) {
	base, err := url.Parse("https://example.com/blog/2025/11/a-post/")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Resolve(base, "../another-post/"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRelative(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Relative("https://example.com/blog/", "https://example.com/blog/2025/11/a-post/")
	}
}

// Errors name a URL without its user name and password.
func TestURLErrorKeepsSecrets(t *testing.T) {
	for _, s := range []string{"http://somebody:topsecret@site.example/a?b", "HTTP://topsecret@site.example", "//somebody:topsecret@site.example:x/", "ftp://topsecret@site.example/"} {
		_, err := URL(s)
		_, err2 := Resolve(nil, s)
		for _, err := range []error{err, err2} {
			if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "somebody") {
				t.Errorf("%s: %v", s, err)
			}
		}
	}
}
