package webauth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/millrace/millrace/internal/canon"
)

func BenchmarkStamp(b *testing.B) {
	s := NewStamp(newTestKey(b, 1), "")
	h := http.Header{"Content-Type": {"application/json"}, "Content-Digest": {canon.Digest([]byte("x"))}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, err := s.Sign("/llm-pages.json", http.StatusOK, h); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerify verifies a request of a robot whose directory is cached.
func BenchmarkVerify(b *testing.B) {
	key := newTestKey(b, 1)
	v := NewVerifier(&VerifierOptions{
		Client: &http.Client{Transport: directoryAt{botDirectory: AppendDirectory(nil, []PublicKey{key.Public()})}}, Bases: []string{siteBase},
	})
	s, err := NewSigner(key, botDirectory)
	if err != nil {
		b.Fatal(err)
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, siteBase+"/a", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	in := httptest.NewRequest(http.MethodGet, "/a", http.NoBody)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		if err := s.Sign(r); err != nil {
			b.Fatal(err)
		}
		in.Header = r.Header
		b.StartTimer()
		if name, err := v.Verify(context.Background(), in); name != "bot.test" {
			b.Fatal(err)
		}
	}
}
