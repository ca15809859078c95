package pipenet

import (
	"context"
	"errors"
	"io"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A client reaches the server until it is closed. Without Accept, Dial waits until its
// context ends.
func TestListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })}
		l := Serve(srv)
		transport := &http.Transport{DialContext: l.Dial}
		res, err := (&http.Client{Transport: transport}).Get("http://anywhere.example/")
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); string(body) != "here" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		res.Body.Close()
		transport.CloseIdleConnections()
		if err := errors.Join(srv.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		if _, err := l.Dial(t.Context(), "tcp", "x:80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("closed: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := Listen().Dial(ctx, "tcp", "x:80"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without Accept: %v", err)
		}
	})
}
