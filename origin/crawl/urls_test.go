package crawl

import "testing"

func TestScope(t *testing.T) {
	for _, c := range []struct{ root, base string }{
		{"https://example.com", "https://example.com/"},
		{"HTTPS://Example.com:443/blog?x=1#y", "https://example.com/blog/"},
		{"https://example.com/docs/index.html", "https://example.com/docs/"},
		{"http://127.0.0.1:8080/a/b/", "http://127.0.0.1:8080/a/b/"},
	} {
		s, err := newScope(c.root)
		if err != nil || s.base != c.base {
			t.Errorf("%s: %q, %v, want %q", c.root, s.base, err, c.base)
		}
	}
	for _, root := range []string{"", "example.com", "ftp://example.com/", "https://u:p@example.com/"} {
		if s, err := newScope(root); err == nil {
			t.Errorf("%s is read as %q", root, s.base)
		}
	}
}

func TestClean(t *testing.T) {
	blog, err := newScope("https://example.com/blog/")
	if err != nil {
		t.Fatal(err)
	}
	const b = "https://example.com/blog"
	for _, c := range []struct {
		in, want string
		class    urlClass
	}{
		{b + "/", b + "/", inside},
		{b, b, inside},
		{b + "?x=1", b + "?x=1", inside},
		{b + "ger/", "", outside},
		{"https://example.com/", "", outside},
		{"https://example.com", "", outside},
		{"https://www.example.com/blog/a", "", outside},
		{"https://example.com.evil.invalid/blog/a", "", outside},
		{"https://example.com:8443/blog/a", "", outside},
		{"http://example.com/blog/a", b + "/a", inside},
		{b + "/a?utm_source=x&UTM_Medium=y&id=7&gclid=z", b + "/a?id=7", inside},
		{b + "/a?utm_source=x", b + "/a", inside},
		{b + "/a?replytocom=5", b + "/a", inside},
		{b + "/a?ref=main&b=2&a=1", b + "/a?ref=main&b=2&a=1", inside},
		{b + "/a?PHPSESSID=0123456789abcdef", b + "/a", inside},
		{b + "/a?sid=7&s=query", b + "/a?sid=7&s=query", inside},
		{b + "/a?sid=0123456789abcdef0123456789abcdef&t=1", b + "/a?t=1", inside},
		{b + "/a;jsessionid=AB12.node?x=1", b + "/a?x=1", inside},
		{b + "/(S(abc123))/a", b + "/a", inside},
		{b + "/a(b)c", b + "/a(b)c", inside},
		{b + "/a?&&", b + "/a", inside},
		{b + "/pic.JPG", "", resource},
		{b + "/doc.pdf?download=1", "", resource},
		{b + "/v1.2", b + "/v1.2", inside},
		{b + "/index.php?title=A.png", b + "/index.php?title=A.png", inside},
		{b + "/wiki/Node.js", b + "/wiki/Node.js", inside},
		{b + "/File:Mill.jpg", b + "/File:Mill.jpg", inside},
		{b + "/x/y/x/y/x/y", b + "/x/y/x/y/x/y", repetitive},
		{b + "/2024/05/05/05/title", b + "/2024/05/05/05/title", inside},
		{b + "/a?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1", b + "/a?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1", repetitive},
	} {
		if got, v := blog.clean(c.in); got != c.want || v != c.class {
			t.Errorf("%s: %q, %d, want %q, %d", c.in, got, v, c.want, c.class)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("https://example.com/blog/(S(x))/a;jsessionid=1?utm_a=1&&b=2&sid=0123456789abcdef0123456789abcdef")
	f.Add("http://example.com/blog/../blog//index.php?title=A&amp;b")
	s, err := newScope("https://example.com/blog/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in string) {
		u, v := s.clean(in)
		if v == outside || v == resource {
			return
		}
		if again, w := s.clean(u); again != u || w != v {
			t.Errorf("%q results in %q, and this in %q (%d, %d)", in, u, again, v, w)
		}
	})
}

func TestKey(t *testing.T) {
	if key("https://a.example/x?b=2&a=1") != key("https://a.example/x?a=1&b=2") {
		t.Error("the order of parameters matters")
	}
	seen := map[uint64]string{}
	for _, u := range []string{"https://a.example/x", "https://a.example/x/", "https://a.example/x?", "https://a.example/x?a", "https://a.example/xa", "https://a.example/x?a=1&b=2"} {
		if other, ok := seen[key(u)]; ok && u != "https://a.example/x?" {
			t.Errorf("%s and %s have the same key", u, other)
		}
		seen[key(u)] = u
	}
	// Stored versions contain keys, so keys must never change.
	if got := key("https://example.com/?a=1&b"); got != 0x94a34597affeff58 {
		t.Errorf("the key is %#x", got)
	}
}

func TestWantsLogin(t *testing.T) {
	for u, want := range map[string]bool{
		"https://a.example/index.php?title=Special:UserLogin&returnto=X": true, "https://a.example/x?action=login": true,
		"https://a.example/x?action=loginfo": false, "https://a.example/login": false,
	} {
		if wantsLogin(u) != want {
			t.Errorf("%s: %v", u, !want)
		}
	}
}

func TestIsLogin(t *testing.T) {
	for u, want := range map[string]bool{
		"https://a.example/login?next=/x": true, "https://a.example/wp-login.php": true, "https://a.example/users/sign_in": true,
		"https://a.example/blog/how-to-login": false, "https://a.example/": false,
	} {
		if isLogin(u) != want {
			t.Errorf("%s: %v", u, !want)
		}
	}
}
