package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestReady(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"))
	listen := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/")
	file := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, file, "listen: "+listen+"\nbase-url: https://www.example.com/\n")
	code, out, errs := command(t, nil, "ready", "--json", "--config", file)
	var r readyReport
	if err := json.Unmarshal([]byte(out), &r); code != exitGood || err != nil || r.URL != s.url+"readyz" || !strings.HasPrefix(r.Answer, "ready\n") {
		t.Errorf("exit %d, %v: %s%s", code, err, out, errs)
	}
	none := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	if exit, code, out := failure(t, nil, "ready", "--listen", none.Listener.Addr().String()); exit != exitFailure || code != "http-503" {
		t.Errorf("without an edition: exit %d %s: %s", exit, code, out)
	}
	none.Close()
	if exit, _, out := failure(t, nil, "ready", "--listen", none.Listener.Addr().String()); exit != exitFailure {
		t.Errorf("without a server: exit %d: %s", exit, out)
	}
	if exit, code, out := failure(t, nil, "ready", "--listen", "8080"); exit != exitUsage || code != "usage/listen" {
		t.Errorf("an address without a port: exit %d %s: %s", exit, code, out)
	}
}

// With a certificate, ready verifies it for the host of the base URL.
func TestReadyTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key)
	s := serve(t, copySite(t, "handbook"), "--tls-cert", cert, "--tls-key", key)
	listen := strings.TrimSuffix(strings.TrimPrefix(s.url, "https://"), "/")
	exit, code, out := failure(t, nil, "ready", "--listen", listen, "--tls-cert", cert, "--tls-key", key, "--base-url", "https://localhost/")
	if exit != exitFailure || code != "certificate" || !strings.Contains(out, "https://localhost/readyz") {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
}
