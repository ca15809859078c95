package fetch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAbsent(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var code int
		switch _, _ = fmt.Sscanf(r.URL.Path, "/%d", &code); {
		case r.URL.Path == robotsPath:
			fmt.Fprint(w, "User-agent: *\nDisallow: /closed\n")
		case r.URL.Path == "/away":
			w.Header().Set("Location", "ftp://example.com/")
			w.WriteHeader(http.StatusFound)
		case r.URL.Path == "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case code != 0:
			w.Header().Set("Retry-After", "100") // longer than any wait
			w.WriteHeader(code)
		}
	}))
	defer srv.Close()
	for _, tt := range []struct {
		path         string
		allowPrivate bool
		want         bool
	}{
		{"/there", true, false},
		{"/404", true, true},
		{"/410", true, true},
		{"/403", true, true},
		{"/400", true, true},
		{"/429", true, false},
		{"/500", true, false},
		{"/503", true, false},
		{"/closed", true, true},
		{"/away", true, true},
		{"/round", true, true},
		{"/there", false, false}, // the address is refused
	} {
		c := New(&Options{AllowPrivate: tt.allowPrivate})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := Do(t.Context(), c.HTTP(), req)
		if err == nil {
			err = CheckStatus(resp)
			_ = resp.Body.Close()
		}
		if got := Absent(fmt.Errorf("policy: %w", err)); got != tt.want {
			t.Errorf("%s: %t, want %t (%v)", tt.path, got, tt.want, err)
		}
		c.CloseIdleConnections()
	}
}
