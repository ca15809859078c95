package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
)

// testHub is a minimal WebSub hub: it verifies subscriptions, and distributes a topic
// when its publisher pings.
type testHub struct {
	*httptest.Server
	mu     sync.Mutex
	subs   []url.Values // form values of verified subscriptions
	pinged []string     // topics
}

func newTestHub(t *testing.T) *testHub {
	t.Helper()
	h := &testHub{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		form := r.PostForm
		switch form.Get("hub.mode") {
		case "subscribe":
			go h.verify(t, form)
		case "publish":
			go h.distribute(t, form.Get("hub.url"))
		default:
			t.Errorf("unexpected request to the hub: %v", form)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *testHub) verify(t *testing.T, form url.Values) {
	q := url.Values{"hub.mode": {"subscribe"}, "hub.topic": form["hub.topic"], "hub.challenge": {"meant?"}, "hub.lease_seconds": form["hub.lease_seconds"]}
	resp, err := http.Get(form.Get("hub.callback") + "?" + q.Encode()) //nolint:noctx // in a test
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || string(body) != "meant?" {
		t.Errorf("%d %q, %v", resp.StatusCode, body, err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs = append(h.subs, form)
}

func (h *testHub) distribute(t *testing.T, topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pinged = append(h.pinged, topic)
	for _, sub := range h.subs {
		if sub.Get("hub.topic") != topic {
			continue
		}
		resp, err := http.Get(topic) //nolint:noctx // in a test
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d, %v", topic, resp.StatusCode, err)
		}
		if code := h.send(t, sub, string(body)); code != http.StatusAccepted {
			t.Errorf("the callback: %d", code)
		}
	}
}

// send posts to a subscriber's callback and returns the status.
func (h *testHub) send(t *testing.T, sub url.Values, body string) int {
	mac := hmac.New(sha256.New, []byte(sub.Get("hub.secret")))
	mac.Write([]byte(body))
	req, err := http.NewRequest(http.MethodPost, sub.Get("hub.callback"), strings.NewReader(body)) //nolint:noctx // in a test
	if err != nil {
		t.Error(err)
		return 0
	}
	req.Header.Set("X-Hub-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0 // the subscriber is down
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func (h *testHub) state() (subs, pinged int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs), len(h.pinged)
}

// An edit reaches the hub, and through it a watch, which pulls at once although nothing
// else is due for hours. The next watch reuses the subscription.
func TestPush(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	dir, mirror := copySite(t, "handbook"), filepath.Join(t.TempDir(), "mirror.db")
	s := serve(t, dir, "--hub", h.URL, "--allow-private")
	at := "127.0.0.1:" + testkit.FreePort(t)
	args := []string{s.url, "--store", mirror, "--no-events", "--min-interval", "5h", "--callback", "http://" + at + "/hubs", "--callback-listen", at, "--log-level", "debug"}
	w := watch(t, args...)
	eventually(t, "all pages are reported", func() bool { return len(lines(t, w.stdout.String())) >= 14 })
	eventually(t, "the hub has a subscriber", func() bool { subs, _ := h.state(); return subs == 1 })
	printed := len(w.stdout.String())
	edit(t, dir, "Alderford is a mill", "Alderford was a mill")
	eventually(t, "the edit is reported", func() bool { return strings.Contains(w.stdout.String()[printed:], `"updated"`) })
	if e := lines(t, w.stdout.String()[printed:]); len(e) != 1 || e[0].URL != s.url+"about/" {
		t.Errorf("%+v", e)
	}
	if code := w.stop(); code != 0 {
		t.Errorf("exit %d:\n%s", code, w.out)
	}
	again := watch(t, args...)
	eventually(t, "the callback works again", func() bool { return h.send(t, h.subs[0], "any") == http.StatusAccepted })
	if subs, _ := h.state(); subs != 1 || again.stop() != 0 {
		t.Errorf("%d subscriptions:\n%s", subs, again.out)
	}
}
