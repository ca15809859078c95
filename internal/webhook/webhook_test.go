package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/pipenet"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func secrets(t *testing.T, text string) []Secret {
	t.Helper()
	s, err := ParseSecrets(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSignature has the test vector of the specification's own libraries.
func TestSignature(t *testing.T) {
	at := time.Unix(1614265330, 0)
	got := signature(secrets(t, secret), "msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if two := signature(secrets(t, secret+"\n\n"+secret+"\n"), "msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`)); two != got+" "+got {
		t.Errorf("two secrets: %s", two)
	}
}

func TestParseSecrets(t *testing.T) {
	long := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 65))
	for text, want := range map[string]string{
		"":                                "no-secret",
		"\n \n":                           "no-secret",
		"hunter2hunter2":                  "secret-prefix",
		secret + "\nwhsec_~~hunter2":      "secret-base64",
		"whsec_aHVudGVyMg==":              "secret-length",
		"whsec_" + long:                   "secret-length",
		strings.Repeat(secret+"\n", 5):    "secret-count",
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo": "secret-base64",
	} {
		_, err := ParseSecrets(text)
		if !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != want || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v: code %q, want %q", text, err, millrace.ErrorCode(err), want)
		}
	}
	if s := secrets(t, secret); strings.Contains(fmt.Sprintf("%v %+v %#v %s", s, s, s, s[0]), "MfKQ") {
		t.Error("printing a secret shows it")
	}
}

// server is a receiver behind an in-memory network.
type server struct {
	mu     sync.Mutex
	answer func(w http.ResponseWriter, n int) // nth request, from 1
	ids    []string
	at     []time.Time
	bodies []string
	bad    int // number of wrong signatures
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	id, stamp := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	if "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) != r.Header.Get("webhook-signature") || r.Method != http.MethodPost ||
		r.Header.Get("Content-Type") != "application/json" || stamp != strconv.FormatInt(time.Now().Unix(), 10) {
		s.bad++
	}
	s.ids, s.at, s.bodies = append(s.ids, id), append(s.at, time.Now()), append(s.bodies, string(body))
	n := len(s.ids)
	s.mu.Unlock()
	s.answer(w, n)
}

// sender returns a sender to a server. It must run in a synctest bubble.
func sender(t *testing.T, s http.Handler, log *slog.Logger) *Sender {
	t.Helper()
	srv := &http.Server{Handler: s}
	client := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true, Delay: -1, Dial: pipenet.Serve(srv).Dial})
	t.Cleanup(func() { client.CloseIdleConnections(); _ = srv.Close() })
	out, err := New(client.HTTP(), "http://hooks.example/hunter2/in?token=hunter2", secrets(t, secret), &Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A message is sent until it is acknowledged. Each attempt has the same ID and a new
// signature, after growing delays.
func TestSendAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &server{answer: func(w http.ResponseWriter, n int) {
			switch {
			case n == 3:
				w.Header().Set("Retry-After", "7200")
				w.WriteHeader(http.StatusServiceUnavailable)
			case n < 14:
				w.Header().Set("Location", "https://elsewhere.example/")
				w.WriteHeader([]int{500, 404, 307, 429}[n%4])
			}
		}}
		out := sender(t, s, slog.New(slog.NewTextHandler(&log, nil)))
		if err := out.Send(t.Context(), []byte(`{"n":1}`)); err != nil {
			t.Fatal(err)
		}
		if err := out.Send(t.Context(), []byte(`{"n":2}`)); err != nil {
			t.Fatal(err)
		}
		if len(s.ids) != 15 || s.bad > 0 || s.ids[0] != s.ids[13] || s.ids[14] == s.ids[0] || s.bodies[13] != `{"n":1}` {
			t.Fatalf("%d requests, %d with wrong signatures: %v", len(s.ids), s.bad, s.ids)
		}
		for i, least := range []time.Duration{time.Second, 2 * time.Second, 2 * time.Hour, 8 * time.Second} {
			if wait := s.at[i+1].Sub(s.at[i]); wait < least/2 {
				t.Errorf("request %d was sent %s after the previous one", i+2, wait)
			}
		}
		if wait := s.at[13].Sub(s.at[12]); wait < 150*time.Second || wait > 12*time.Minute {
			t.Errorf("the last wait was %s", wait)
		}
		for _, want := range []string{"503", "307", "level=INFO", "receiver=http://hooks.example "} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not contain %q:\n%s", want, log.String())
			}
		}
		if strings.Contains(log.String(), "hunter2") || strings.Contains(out.Name()+out.Key(), "hunter2") {
			t.Errorf("the log contains a secret:\n%s", log.String())
		}
	})
}

// A receiver that is down for a day gets the message afterwards.
func TestReceiverDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(24 * time.Hour)
		s := &server{}
		s.answer = func(w http.ResponseWriter, _ int) {
			if time.Now().Before(up) {
				w.WriteHeader(http.StatusBadGateway)
			}
		}
		if err := sender(t, s, nil).Send(t.Context(), []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if n := len(s.ids); n < 100 || n > 400 || time.Since(up) > 11*time.Minute {
			t.Errorf("%d requests, the last %s after the receiver was up", n, time.Since(up))
		}
	})
}

// TestSendEnds tests the responses that end a delivery, and the end of the context.
func TestSendEnds(t *testing.T) {
	for status, want := range map[int]error{
		http.StatusGone: millrace.ErrNotFound, http.StatusRequestEntityTooLarge: millrace.ErrTooLarge, http.StatusInternalServerError: context.DeadlineExceeded,
	} {
		synctest.Test(t, func(t *testing.T) {
			out := sender(t, &server{answer: func(w http.ResponseWriter, _ int) { w.WriteHeader(status) }}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := out.Send(ctx, []byte(`{}`))
			if !errors.Is(err, want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%d: %v", status, err)
			}
		})
	}
	// The receiver reads the message and does not respond.
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(_ http.ResponseWriter, n int) {
			if n < 3 {
				time.Sleep(20 * time.Minute)
			}
		}}
		if err := sender(t, s, nil).Send(t.Context(), []byte(`{}`)); err != nil || len(s.ids) != 3 {
			t.Errorf("%d requests: %v", len(s.ids), err)
		}
		time.Sleep(time.Hour) // so that its handlers end
	})
}

func TestNew(t *testing.T) {
	client := fetch.New(nil).HTTP()
	for target, want := range map[string]string{
		"hooks.example/in":                     "bad-scheme",
		"ftp://hooks.example/":                 "bad-scheme",
		"http:///in":                           "bad-scheme",
		"https://me:hunter2@hooks.example/":    "url-credentials",
		"https://hooks.example/%zz?hunter2":    "bad-url",
		"//hooks.example/in?token=hunter2":     "bad-scheme",
		"https://hooks.example:hunter2/in":     "bad-url",
		"https://hooks.example/in\n?t=hunter2": "bad-url",
	} {
		_, err := New(client, target, secrets(t, secret), nil)
		if !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != want || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v: code %q, want %q", target, err, millrace.ErrorCode(err), want)
		}
	}
	if _, err := New(client, "https://hooks.example/", nil, nil); !errors.Is(err, millrace.ErrInvalid) {
		t.Error(err)
	}
	s, err := New(client, "http://127.0.0.1:1/in?t=hunter2", secrets(t, secret), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), []byte(`{}`)); millrace.ErrorCode(err) != "address-loopback" || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}
