package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The dashboard saves rules to the configuration file and applies them to machine
// documents. Sessions stay valid.
func TestDashboardSavesRules(t *testing.T) {
	t.Parallel()
	dir, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "millrace.yaml")
	password, err := newPassword()
	if err != nil {
		t.Fatal(err)
	}
	lines := "# ours\ndashboard: /board # here\ndashboard-password: '" + password.Hash + "'\n"
	write(t, file, lines)
	s := serve(t, dir, "--config", file)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	defer client.CloseIdleConnections()
	read := func(resp *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v\n%s", resp.Request.URL, resp.StatusCode, err, b)
		}
		return string(b)
	}
	token := regexp.MustCompile(`name="csrf" value="([^"]*)"`)
	send := func(path string, form url.Values) string {
		t.Helper()
		m := token.FindStringSubmatch(read(client.Get(s.url + "board/" + path)))
		form.Set("csrf", m[1])
		return read(client.PostForm(s.url+"board/"+path, form))
	}
	if body := send("login", url.Values{"password": {password.Password}}); !strings.Contains(body, "Log out") {
		t.Fatal(body)
	}
	const about = "page?url=%2Fabout%2F&as=rules&drop=h2"
	tried := read(client.Get(s.url + "board/" + about))
	if !strings.Contains(tried, "<del>## People</del>") {
		t.Fatalf("nothing would change:\n%s", tried)
	}
	if _, _, body := get(t, s.url+"about/llm.json"); !strings.Contains(body, "People") {
		t.Fatalf("preview changed the page:\n%s", body)
	}
	form := url.Values{"url": {"/about/"}, "drop": {"h2"}, "csrf": {token.FindStringSubmatch(tried)[1]}}
	read(client.PostForm(s.url+"board/page/rules", form))
	if b, err := os.ReadFile(file); err != nil || string(b) != lines+"\ndrop:\n  - \"h2\"\n" {
		t.Errorf("%v\n%s", err, b)
	}
	eventually(t, "the document follows the rules", func() bool {
		code, _, body := get(t, s.url+"about/llm.json")
		return code == http.StatusOK && !strings.Contains(body, "People")
	})
	if body := read(client.Get(s.url + "board/page?url=%2Fabout%2F&as=rules")); !strings.Contains(body, `>h2</textarea>`) {
		t.Error(body)
	}
	// After an edit of the file, the dashboard refuses to overwrite it.
	write(t, file, lines+"drop: [h3]\n")
	resp, err := client.PostForm(s.url+"board/page/rules", url.Values{"url": {"/about/"}, "drop": {"h4"}, "csrf": form["csrf"]})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusConflict {
		t.Error(resp.Status)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != lines+"drop: [h3]\n" {
		t.Errorf("%v\n%s", err, b)
	}
}
