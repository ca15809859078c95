package main

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
)

// owner is a browser that can log in to a dashboard.
type owner struct {
	t      *testing.T
	at     string // URL of the dashboard, ends in "/"
	client *http.Client
}

func newOwner(t *testing.T, at string) *owner {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &owner{t, at, &http.Client{Jar: jar}}
}

// page returns the text of a page, and the path after redirects.
func (o *owner) page(path string) (at, text string) {
	o.t.Helper()
	res, err := o.client.Get(o.at + path)
	if err != nil {
		o.t.Fatal(err)
	}
	return o.got(res)
}

// got returns the path and the text of a response.
func (o *owner) got(res *http.Response) (at, text string) {
	o.t.Helper()
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return res.Request.URL.Path, string(b)
}

var ownerToken = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// send submits a form of a page.
func (o *owner) send(page, path string, form url.Values) (at, text string) {
	o.t.Helper()
	_, text = o.page(page)
	m := ownerToken.FindStringSubmatch(text)
	if m == nil {
		o.t.Fatalf("%s has no form:\n%s", page, text)
	}
	form.Set("csrf", m[1])
	res, err := o.client.PostForm(o.at+path, form)
	if err != nil {
		o.t.Fatal(err)
	}
	return o.got(res)
}

func (o *owner) logIn(password string) (in bool) {
	o.t.Helper()
	at, _ := o.send("login", "login", url.Values{"password": {password}})
	return strings.HasSuffix(o.at, at)
}

var reference = regexp.MustCompile(` (?:href|src)="([^"#]+)`)

// complete checks that everything to which a page refers exists.
func (o *owner) complete(page string) {
	o.t.Helper()
	base, err := url.Parse(o.at + page)
	if err != nil {
		o.t.Fatal(err)
	}
	_, text := o.page(page)
	found := reference.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		o.t.Errorf("%s refers to a missing target:\n%s", base, text)
	}
	for _, m := range found {
		to, err := base.Parse(html.UnescapeString(m[1]))
		if err != nil {
			o.t.Fatal(err)
		}
		res, err := o.client.Get(to.String())
		if err != nil {
			o.t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			o.t.Errorf("%s refers to %s: %s", base, to, res.Status)
		}
	}
}

// Alongside a server that does not know millrace yet, the printed URL is that of millrace.
func TestDashboardAlongside(t *testing.T) {
	t.Parallel()
	password, err := newPassword()
	if err != nil {
		t.Fatal(err)
	}
	listen := "127.0.0.1:" + testkit.FreePort(t)
	s := serve(t, copySite(t, "handbook"), "--place", "alongside", "--base-url", "https://handbook.example/", "--listen", listen, "--dashboard", "/board", "--dashboard-password", password.Hash)
	defer s.ended(t)
	at := "http://" + listen + "/board/"
	eventually(t, "the URL of the dashboard is printed", func() bool { return strings.Contains(s.out.String(), "dashboard "+at+"\n") })
	o := newOwner(t, at)
	o.complete("login")
	if !o.logIn(password.Password) {
		t.Fatal("the password is rejected")
	}
	o.complete("")
}

// The owner sees requests of machines. Sessions survive a reload unless the password
// changes.
func TestDashboard(t *testing.T) {
	t.Parallel()
	dir, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "millrace.yaml")
	made := func() (r passwordReport) {
		code, out, errs := command(t, nil, "keys", "password", "--json")
		if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
			t.Fatalf("exit %d, %v:\n%s%s", code, err, out, errs)
		}
		return r
	}
	first, second := made(), made()
	config := "dashboard: /our/board\ndashboard-password: '" + first.Hash + "'\n"
	write(t, file, config)
	for _, v := range configOf(t, file).Values {
		if v.Key == "dashboard-password" && (!v.Hidden || v.Value != "(hidden)") {
			t.Errorf("the hash is shown: %v", v)
		}
	}
	s := serve(t, dir, "--config", file)
	defer s.ended(t)

	get(t, s.url+"llm-pages.json", "User-Agent", "GPTBot/1.2")
	o := newOwner(t, s.url+"our/board/")
	if at, _ := o.page(""); at != "/our/board/login" {
		t.Errorf("without a session, it is at %s", at)
	}
	if o.logIn(second.Password) || !o.logIn(first.Password) {
		t.Fatal("a wrong password is accepted, or the right one is rejected")
	}
	eventually(t, "the dashboard shows the machine", func() bool { _, text := o.page(""); return strings.Contains(text, ">GPTBot</a>") })
	for _, page := range []string{"traffic", "pages", "changes", "searches", "protocols", "policy", "errors", "unusual"} {
		if at, text := o.page(page); at != "/our/board/"+page || !strings.Contains(text, `aria-current="page"`) || strings.Contains(text, `class="message bad"`) {
			t.Errorf("%s is at %s:\n%s", page, at, text)
		}
	}
	if code, h, text := get(t, s.url+"robots.txt"); code != http.StatusOK || strings.Contains(text, "board") || strings.Contains(h.Get("Link"), "board") {
		t.Errorf("robots.txt: %d\n%s", code, text)
	}

	o.send("protocols", "protocols", url.Values{"protocol": {"tct-01"}})
	s.reload(t, file, config+"rate: 100\n")
	if at, text := o.page("protocols"); at != "/our/board/protocols" || !strings.Contains(text, `data-check="before-reload"`) {
		t.Errorf("after the reload: at %s, without the earlier result:\n%s", at, text)
	}
	s.reload(t, file, strings.Replace(config, first.Hash, second.Hash, 1))
	if at, _ := o.page("traffic"); at != "/our/board/login" {
		t.Errorf("with another password, %s is accessible", at)
	}
	if o.logIn(first.Password) || !o.logIn(second.Password) {
		t.Error("the new password is rejected")
	}
}

func TestDashboardUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		code string
	}{
		{[]string{"--dashboard", "/board"}, "usage/dashboard"},
		{[]string{"--dashboard", "board", "--dashboard-password", "x"}, "usage/dashboard"},
		{[]string{"--dashboard", "/", "--dashboard-password", "x"}, "usage/dashboard"},
		{[]string{"--dashboard", "/board", "--dashboard-password", "secret-words"}, "usage/dashboard-password"},
	} {
		exit, code, out := failure(t, nil, append([]string{"serve", t.TempDir()}, tt.args...)...)
		if exit != exitUsage || code != tt.code || strings.Contains(out, "secret-words") {
			t.Errorf("%q: exit %d %s:\n%s", tt.args, exit, code, out)
		}
	}
}
