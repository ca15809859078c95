package static

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// hostSite is a site whose documents have many header fields and unusual names.
func hostSite() site {
	s := mill()
	for _, name := range []string{"/notes.md", "/it's [1] (50%25).md", "/deep/a+b.md"} {
		s[name] = data("#", name, "Content-Type", "text/markdown; charset=utf-8", "Access-Control-Allow-Origin", "*")
	}
	s["/plain.json"] = data("{}", "p", "Access-Control-Allow-Origin", "*")
	s["/scp/all-00.scp.zst"] = data("z", "z", "Content-Type", "application/scp", "Content-Encoding", "zstd", "Access-Control-Allow-Origin", "*")
	return s
}

// finished is a finished build for a host, whose files can be read.
func finished(t *testing.T, host string, s site) (*Build, string) {
	t.Helper()
	dir := t.TempDir()
	b, err := begun(t, dir, s, &Options{Host: host})
	if err == nil {
		err = b.Finish(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b, dir
}

// pathToRegexp translates the part of path-to-regexp's syntax that a generated vercel.json
// contains: escaped characters, groups, and other characters as they are.
func pathToRegexp(t *testing.T, source string) *regexp.Regexp {
	t.Helper()
	if unknown := regexp.MustCompile(`\\.|\(\.\*\)|[^\\:(){}?*+.\[\]]`).ReplaceAllString(source, ""); unknown != "" {
		t.Errorf("source %s: %q has a special meaning", source, unknown)
	}
	return regexp.MustCompile("^" + source + "$")
}

// By Vercel's rules, a generated vercel.json sets all fields of each document. It keeps the
// content of the site's own vercel.json.
func TestVercel(t *testing.T) {
	s := hostSite()
	s["/vercel.json"] = page("vercel.json", `{"cleanUrls": false, "headers": [{"source": "/own", "headers": [{"key": "X-Own", "value": "<1>"}]}]}`)
	b, dir := finished(t, vercel, s)
	text, err := os.ReadFile(filepath.Join(dir, "vercel.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		CleanURLs *bool        `json:"cleanUrls"`
		Headers   []vercelRule `json:"headers"`
		Rewrites  []vercelRule `json:"rewrites"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if file.CleanURLs == nil || len(file.Headers) < 3 || file.Headers[0].Source != "/own" || file.Headers[0].Headers[0].Value != "<1>" {
		t.Errorf("the site's own members:\n%s", text)
	}
	err = b.each(func(l *line) error {
		got := []field{}
		for _, r := range file.Headers {
			if pathToRegexp(t, r.Source).MatchString(l.Path) {
				for _, f := range r.Headers {
					got = append(got, field{f.Key, f.Value})
				}
			}
		}
		want := append([]field{}, b.settable(l.Set)...)
		if l.Link != "" {
			want = append(want, field{"Link", l.Link})
		}
		byName := func(a, b field) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(got, byName)
		slices.SortFunc(want, byName)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", l.Path, d)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Rewrites) != 1 || !pathToRegexp(t, file.Rewrites[0].Source).MatchString("/a.html/d.json") || file.Rewrites[0].Destination != "/a.html.docs/d.json" {
		t.Errorf("rewrites: %+v", file.Rewrites)
	}
	s["/vercel.json"] = page("vercel.json", `{"headers": {}}`)
	if b, err := begun(t, t.TempDir(), s, &Options{Host: vercel}); err != nil || millrace.ErrorCode(b.Finish(t.Context())) != "invalid" {
		t.Errorf("an invalid vercel.json: %v", err)
	}
}

// fakeAWS is an aws command that appends its arguments to the file LOG.
const fakeAWS = "#!/bin/sh\nfor a; do printf '%s\\0' \"$a\"; done >>\"$LOG\"\nprintf '\\n\\0' >>\"$LOG\"\n"

// glob reports whether a pattern of `aws s3` matches a name. It is Python's fnmatch.
func glob(pattern, name string) bool {
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*':
			out.WriteString(".*")
		case c == '?':
			out.WriteString(".")
		case c == '[' && strings.Contains(pattern[i:], "]"):
			out.WriteString(regexp.QuoteMeta(pattern[i+1 : i+2]))
			i += 2
		default:
			out.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return regexp.MustCompile("(?s)^" + out.String() + "$").MatchString(name)
}

// The script for S3 uploads each file once, with the metadata of its document.
func TestS3(t *testing.T) {
	b, dir := finished(t, "s3", hostSite())
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(filepath.Join(bin, "aws"), []byte(fakeAWS), 0o700); err != nil { //nolint:gosec // the file must be executable
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "sh", filepath.Join(dir, hidden, "s3.sh"), "bucket", "E123")
	run.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "LOG="+log)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	uploaded := map[string][]field{}
	invalidated := false
	for call := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n\x00"), "\n\x00") {
		args := strings.Split(strings.TrimSuffix(call, "\x00"), "\x00")
		if args[0] == "cloudfront" {
			invalidated = slices.Contains(args, "E123")
			continue
		}
		if !slices.Equal(args[:4], []string{"s3", "sync", ".", "s3://bucket"}) {
			t.Fatalf("%q", args)
		}
		for name := range files(t, dir) {
			in, fields := true, []field{}
			for i := 4; i < len(args); i++ {
				switch args[i] {
				case "--include", "--exclude":
					if glob(args[i+1], name) {
						in = args[i] == "--include"
					}
					i++
				case "--delete":
				default:
					for n, option := range s3Options {
						if option == args[i] {
							fields = append(fields, field{n, args[i+1]})
						}
					}
					i++
				}
			}
			if !in {
				continue
			}
			if _, twice := uploaded[name]; twice || strings.HasPrefix(name, hidden) {
				t.Errorf("%s is uploaded twice, or should not be uploaded", name)
			}
			slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.Name, b.Name) })
			uploaded[name] = fields
		}
	}
	if !invalidated {
		t.Error("the distribution keeps the old files")
	}
	err = b.each(func(l *line) error {
		want := append([]field{}, b.s3Metadata(l)...)
		if d := cmp.Diff(want, uploaded[l.Name]); d != "" {
			t.Errorf("%s (-want +got):\n%s", l.Name, d)
		}
		delete(uploaded, l.Name)
		return nil
	})
	if err != nil || len(uploaded) > 0 {
		t.Errorf("%v, also uploaded: %v", err, slices.Collect(maps.Keys(uploaded)))
	}
}

// The policy of CloudFront has the fields that all documents share.
func TestCloudFront(t *testing.T) {
	s := site{}
	for _, name := range []string{"/a.md", "/b.json"} {
		s[name] = data("", name, "Access-Control-Allow-Origin", "*", "X-Content-Type-Options", "nosniff", "Content-Usage", "train-ai=n", "X-Of", name)
	}
	_, dir := finished(t, "s3", s)
	text, err := os.ReadFile(filepath.Join(dir, hidden, "cloudfront-headers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Name                  string
		CorsConfig            struct{ AccessControlAllowOrigins struct{ Items []string } }
		SecurityHeadersConfig struct {
			ContentTypeOptions struct{ Override bool }
		}
		CustomHeadersConfig struct {
			Quantity int
			Items    []struct{ Header, Value string }
		}
	}
	if err := json.Unmarshal(text, &policy); err != nil {
		t.Fatal(err)
	}
	if len(policy.CorsConfig.AccessControlAllowOrigins.Items) != 1 || !policy.SecurityHeadersConfig.ContentTypeOptions.Override ||
		policy.CustomHeadersConfig.Quantity != 1 || policy.CustomHeadersConfig.Items[0].Header != "Content-Usage" {
		t.Errorf("%s", text)
	}
}

// A host gets the files that it reads and no others.
func TestHostFiles(t *testing.T) {
	want := map[string][]string{
		"github": {".nojekyll"}, "gitlab": {redirectsName}, netlify: {headersName, redirectsName}, cloudflare: {headersName, redirectsName}, vercel: {vercelName},
		"s3":    {hidden + "/cloudfront-function.js", hidden + "/cloudfront-headers.json", hidden + "/s3.sh"},
		"nginx": {hidden + "/nginx-http.conf", hidden + "/nginx.conf"}, "caddy": {hidden + "/Caddyfile"}, "plain": {},
	}
	_, plain := finished(t, "", mill())
	for _, host := range HostNames() {
		_, dir := finished(t, host, mill())
		got := []string{}
		for name := range files(t, dir) {
			if _, err := os.Stat(filepath.Join(plain, name)); err != nil {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if d := cmp.Diff(want[host], got); d != "" {
			t.Errorf("%s (-want +got):\n%s", host, d)
		}
	}
}

func TestGuessHost(t *testing.T) {
	for _, tt := range []struct{ base, file, want string }{
		{"https://ann.github.io/notes/", "x", "github"},
		{"https://github.io.example/", "x", ""},
		{"https://mill.pages.dev/", "netlify.toml", "cloudflare"},
		{base, "netlify.toml", "netlify"},
		{base, "vercel.json", "vercel"},
		{base, "CNAME", "github"},
		{base, ".gitlab-ci.yml", "gitlab"},
		{"https://d111.cloudfront.net/", "x", "s3"},
	} {
		if got := GuessHost(tt.base, fstest.MapFS{tt.file: {}}); got != tt.want {
			t.Errorf("%s with %s: %q, want %q", tt.base, tt.file, got, tt.want)
		}
	}
	if got := GuessHost(base, nil); got != "" {
		t.Errorf("without a folder: %q", got)
	}
}

// A host that is opened from a folder sends what the build's own host with every field sends,
// and names the files of URLs.
func TestOpenHost(t *testing.T) {
	for _, name := range []string{"caddy", "github"} {
		b, dir := finished(t, name, hostSite())
		ideal := &Host{build: b, kind: kindOf("caddy")}
		h, err := OpenHost(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if h.Base() != b.base.String() {
			t.Errorf("base %s, want %s", h.Base(), b.base)
		}
		for p := range hostSite() {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, b.base.String()+strings.ReplaceAll(strings.TrimPrefix(p, "/"), " ", "%20"), nil)
			want, got := httptest.NewRecorder(), httptest.NewRecorder()
			ideal.ServeHTTP(want, req)
			h.ServeHTTP(got, req)
			if d := cmp.Diff(want.Result().Header, got.Result().Header); d != "" || want.Code != got.Code || want.Body.String() != got.Body.String() {
				t.Errorf("%s: %d, want %d (-want +got):\n%s", p, got.Code, want.Code, d)
			}
			if _, err := os.Stat(h.File(req.URL.String())); got.Code == http.StatusOK && err != nil {
				t.Errorf("the file of %s: %v", p, err)
			}
		}
		if got := h.File(h.Base() + "no/such.txt"); got != filepath.Join(dir, "no", "such.txt") {
			t.Errorf("the path of a missing file is %s", got)
		}
		if got := h.File(h.Base() + "%2E%2E/b"); got != dir {
			t.Errorf("the path of a URL without a file is %s", got)
		}
	}
	if _, err := OpenHost(t.TempDir()); millrace.ErrorCode(err) != "foreign-folder" {
		t.Errorf("another folder: %v", err)
	}
}
