package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	eventsSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	umamiWebsite  = "3f0f2f62-9a53-4c3f-8a83-3a6c9b4d7c11"
	exportTimeout = 30 * time.Second
)

// serve sends all recorded events to a service, including those recorded before the
// service was configured.
func TestEventsTo(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	bodies := map[string][]string{} // bodies, by path
	all := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies[r.URL.Path] = append(bodies[r.URL.Path], r.UserAgent()+" "+r.Header.Get("Webhook-Signature")+" "+string(body))
		if len(bodies) == 4 && len(bodies["/api/send"]) == 2 {
			select {
			case <-all:
			default:
				close(all)
			}
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer srv.Close()
	dir := copySite(t, "handbook")
	file := filepath.Join(t.TempDir(), "store.db")
	s := serve(t, dir, "--store", file)
	get(t, s.url+"docs/llm.json", "User-Agent", gptBot, "X-OpenFeeder-Intent", "<script>")
	if code := s.stop(); code != 0 {
		t.Fatalf("exit %d: %s", code, s.out)
	}
	s = serve(t, dir, "--store", file, "--allow-private", "--events-secret", eventsSecret,
		"--events-to", "umami="+srv.URL+"/?website="+umamiWebsite,
		"--events-to", "umami="+srv.URL+"/?website="+strings.Replace(umamiWebsite, "3", "4", 1),
		"--events-to", "plausible="+srv.URL+"/?domain=example.com",
		"--events-to", "ga4="+srv.URL+"/?measurement_id=G-ABC1234567&api_secret=hunter2",
		"--events-to", "webhook="+srv.URL+"/hunter2")
	select {
	case <-all:
	case <-time.After(exportTimeout):
		t.Error("not all events were sent")
	}
	for _, name := range []string{"umami " + srv.URL, "umami " + srv.URL + " (2)", "ga4 " + srv.URL} {
		if status, _, body := get(t, s.url+"metrics"); status != http.StatusOK || !strings.Contains(body, `millrace_exporter_waiting_events{exporter="`+name+`"}`) {
			t.Errorf("metrics: %d, without %s: %s", status, name, body)
		}
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit %d: %s", code, s.out)
	}
	if text := s.out.String(); strings.Contains(text, "hunter2") || strings.Contains(text, eventsSecret) {
		t.Errorf("output has a secret:\n%s", text)
	}
	mu.Lock()
	defer mu.Unlock()
	for path, want := range map[string]string{
		"/api/send": `"name":"bot_fetch"`, "/api/event": `"name":"bot_fetch"`, "/mp/collect": `"name":"bot_fetch"`, "/hunter2": `"bot_name":"GPTBot"`,
	} {
		n := 1
		if path == "/api/send" {
			n = 2
		}
		if len(bodies[path]) != n || !strings.Contains(bodies[path][0], want) || !strings.Contains(bodies[path][0], "/docs/") || strings.HasPrefix(bodies[path][0], "Go-http-client") {
			t.Errorf("%s received %q", path, bodies[path])
		}
		if signed := strings.Contains(bodies[path][0], " v1,"); signed != (path == "/hunter2") {
			t.Errorf("%s: signed: %t", path, signed)
		}
	}
}

// serve rejects wrong event flags at startup and prints no secret.
func TestEventsToWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code string
		args []string
	}{
		{"usage/events-to", []string{"--events-to", "matomo=https://a.example/"}},
		{"usage/events-to", []string{"--events-to", "https://a.example/hunter2"}},
		{"usage/events-to", []string{"--events-to", "umami=https://a.example/"}},
		{"usage/events-to", []string{"--events-to", "webhook=https://a.example/", "--events-to", "webhook=https://a.example/", "--events-secret", eventsSecret}},
		{"usage/events-secret", []string{"--events-to", "webhook=https://a.example/hunter2"}},
		{"usage/events-secret", []string{"--events-secret", eventsSecret}},
		{"usage/events-secret", []string{"--events-to", "webhook=https://a.example/", "--events-secret", "hunter2"}},
		{"usage/events-to", []string{"--events", "0", "--events-to", "plausible=https://a.example/?domain=a.example"}},
	} {
		exit, code, out := failure(t, nil, append([]string{"serve", copySite(t, "handbook"), "--listen", "127.0.0.1:0", "--store", filepath.Join(t.TempDir(), "store.db")}, c.args...)...)
		if exit != exitUsage || code != c.code || strings.Contains(out, "hunter2") {
			t.Errorf("%q: exit %d %s, want %s: %s", c.args, exit, code, c.code, out)
		}
	}
}

// config shows the event flags without secrets.
func TestEventsToHidesSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "millrace.yaml")
	err := os.WriteFile(file, []byte(`events-secret: `+eventsSecret+`
events-to:
  - ga4=https://www.google-analytics.com/mp/collect?measurement_id=G-ABC1234567&api_secret=hunter2
  - webhook=https://hooks.example/hunter2
  - umami=https://stats.example.com/?website=`+umamiWebsite+`
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"config"}, {"config", "--json"}, {"config", "pull", "--json"}} {
		code, out, errs := command(t, nil, append(args, "--config", file)...)
		if code != 0 || strings.Contains(out+errs, "hunter2") || strings.Contains(out+errs, eventsSecret[6:]) {
			t.Errorf("%q: exit %d:\n%s%s", args, code, out, errs)
		}
		if args[len(args)-1] == "--json" && !strings.Contains(out, "webhook=https://hooks.example/(hidden)") {
			t.Errorf("%q:\n%s", args, out)
		}
	}
}
