package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

const testKey = "sk-very-secret-123"

// modelServer is a server of a model. A vector contains the length of the text and its first
// byte.
type modelServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []embeddingsRequest
	auth  []string
}

// serveModel starts a modelServer. If first returns true, it has sent the response instead.
func serveModel(t *testing.T, first func(n int, r embeddingsRequest, w http.ResponseWriter) bool) *modelServer {
	t.Helper()
	s := &modelServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q embeddingsRequest
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" {
			http.Error(w, "what?", http.StatusNotFound)
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, q)
		s.auth = append(s.auth, r.Header.Get("Authorization"))
		n := len(s.asked)
		s.mu.Unlock()
		if first != nil && first(n, q, w) {
			return
		}
		var data []string
		for i, text := range q.Input {
			// In reverse order: the client must use the index.
			data = append([]string{fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%d,%d]}`, i, len(text), text[0])}, data...)
		}
		fmt.Fprintf(w, `{"object":"list","data":[%s],"model":"m","usage":{}}`, strings.Join(data, ","))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *modelServer) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func embedder(t *testing.T, s *modelServer, o *EmbedderOptions) *Embedder {
	t.Helper()
	if o == nil {
		o = &EmbedderOptions{}
	}
	o.Key = testKey
	o.Backoff = time.Millisecond
	e, err := NewEmbedder(s.Client(), s.URL+"/v1", "m", o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// wantVector returns the vector of a text, scaled to length 1.
func wantVector(text string) []float32 {
	x, y := float64(len(text)), float64(text[0])
	l := math.Hypot(x, y)
	return []float32{float32(x / l), float32(y / l)}
}

func TestEmbedBatches(t *testing.T) {
	s := serveModel(t, nil)
	e := embedder(t, s, &EmbedderOptions{Batch: 2, DocumentPrefix: "doc: ", QueryPrefix: "ask: "})
	texts := []string{"a", " \n", "bb", "ccc", "", "dddd", "e\xff"}
	got, err := e.Embed(t.Context(), false, texts)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float32{
		wantVector("doc: a"), nil, wantVector("doc: bb"), wantVector("doc: ccc"), nil, wantVector("doc: dddd"),
		wantVector("doc: e\uFFFD"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, err = e.Embed(t.Context(), true, []string{"what"})
	if err != nil || len(got) != 1 || !cmp.Equal(got[0], wantVector("ask: what")) {
		t.Errorf("question: %v, %v", got, err)
	}
	var sizes []int
	for i, q := range s.asked {
		sizes = append(sizes, len(q.Input))
		if q.Model != "m" || q.Format != "float" || s.auth[i] != "Bearer "+testKey {
			t.Errorf("request %d: %+v, %q", i, q, s.auth[i])
		}
	}
	if diff := cmp.Diff([]int{2, 2, 1, 1}, sizes); diff != "" {
		t.Error("texts of each request", diff)
	}
	if got, err := e.Embed(t.Context(), false, nil); err != nil || len(got) != 0 {
		t.Errorf("without texts: %v, %v", got, err)
	}
}

func TestEmbedName(t *testing.T) {
	names := map[string]bool{}
	for _, o := range []*EmbedderOptions{nil, {Dimensions: 256}, {DocumentPrefix: "x"}, {DocumentPrefix: "y"}} {
		e, err := NewEmbedder(nil, "http://localhost/v1/embeddings", "m", o)
		if err != nil {
			t.Fatal(err)
		}
		names[e.Model()] = true
	}
	if len(names) != 4 || !names["m"] {
		t.Error(names)
	}
}

func TestNewEmbedderRefuses(t *testing.T) {
	for _, c := range []struct{ endpoint, model, key string }{
		{"", "m", ""},
		{"localhost:11434", "m", ""},
		{"ftp://user:" + testKey + "@example.com/", "m", ""},
		{"http://u:" + testKey + "@example.com/v1", "", ""},
		{"http://example.com/%zz?" + testKey, "m", ""},
		{"http://example.com/", "m", testKey + "\n"},
	} {
		_, err := NewEmbedder(nil, c.endpoint, c.model, &EmbedderOptions{Key: c.key})
		if !errors.Is(err, millrace.ErrInvalid) || strings.Contains(err.Error(), testKey) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Every invalid response is an error with a reason and without the key.
func TestEmbedFaults(t *testing.T) {
	answer := func(status int, body string, header ...string) func(int, embeddingsRequest, http.ResponseWriter) bool {
		return func(_ int, _ embeddingsRequest, w http.ResponseWriter) bool {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return true
		}
	}
	vector := func(index int, numbers string) string {
		return fmt.Sprintf(`{"index":%d,"embedding":[%s]}`, index, numbers)
	}
	data := func(vectors ...string) string { return `{"data":[` + strings.Join(vectors, ",") + `]}` }
	for name, c := range map[string]struct {
		first    func(int, embeddingsRequest, http.ResponseWriter) bool
		is       error
		says     string
		requests int
	}{
		"too few":          {answer(200, data(vector(0, "1,2"))), millrace.ErrInvalid, "vector-count", 1},
		"too many":         {answer(200, data(vector(0, "1"), vector(1, "1"), vector(2, "1"))), millrace.ErrInvalid, "vector-count", 1},
		"none":             {answer(200, `{}`), millrace.ErrInvalid, "vector-count", 1},
		"twice":            {answer(200, data(vector(1, "1,2"), vector(1, "1,2"))), millrace.ErrInvalid, "vector-index", 1},
		"outside":          {answer(200, data(vector(0, "1,2"), vector(2, "1,2"))), millrace.ErrInvalid, "vector-index", 1},
		"negative":         {answer(200, data(vector(0, "1,2"), vector(-1, "1,2"))), millrace.ErrInvalid, "vector-index", 1},
		"half indexed":     {answer(200, data(vector(0, "1,2"), `{"embedding":[1,2]}`)), millrace.ErrInvalid, "vector-index", 1},
		"two sizes":        {answer(200, data(vector(0, "1,2"), vector(1, "1"))), millrace.ErrInvalid, "vector-size", 1},
		"empty vector":     {answer(200, data(vector(0, ""), vector(1, ""))), millrace.ErrInvalid, "vector-size", 1},
		"zero vector":      {answer(200, data(vector(0, "1,0"), vector(1, "0,0"))), millrace.ErrInvalid, "vector-zero", 1},
		"NaN":              {answer(200, data(vector(0, "1,NaN"), vector(1, "1,2"))), millrace.ErrInvalid, "json-syntax", 1},
		"null":             {answer(200, data(vector(0, "1,null"), vector(1, "1,2"))), millrace.ErrInvalid, "json-type", 1},
		"text":             {answer(200, data(vector(0, `1,"2"`), vector(1, "1,2"))), millrace.ErrInvalid, "json-type", 1},
		"infinite":         {answer(200, data(vector(0, "1,1e39"), vector(1, "1,2"))), millrace.ErrInvalid, "json-type", 1},
		"base64":           {answer(200, `{"data":[{"index":0,"embedding":"AAAA"},{"index":1,"embedding":"AAAA"}]}`), millrace.ErrInvalid, "json-type", 1},
		"HTML":             {answer(200, "<html>"), millrace.ErrInvalid, "json-syntax", 1},
		"cut off":          {answer(200, `{"data":[`), millrace.ErrInvalid, "json-truncated", 1},
		"huge":             {answer(200, `{"data":[{"index":0,"embedding":[`+strings.Repeat("1.25,", 200_000)+"1]}]}"), millrace.ErrTooLarge, "json-size", 1},
		"no content":       {answer(204, ""), millrace.ErrInvalid, "http-204", 1},
		"redirect":         {answer(307, "", "Location", "/elsewhere"), millrace.ErrInvalid, "http-307", 1},
		"no such model":    {answer(404, `{"error":{"message":"model \"m\" not found"}}`), millrace.ErrNotFound, "http-404", 1},
		"wrong key":        {answer(401, `{"error":"bad key `+testKey+`"}`), millrace.ErrForbidden, "http-401", 1},
		"refused":          {answer(400, `{"error":{"message":"no"}}`), millrace.ErrInvalid, "http-400", 2},
		"busy":             {answer(429, "slow down"), millrace.ErrUnavailable, "http-429", 3},
		"broken":           {answer(500, strings.Repeat(testKey, 100)), millrace.ErrUnavailable, "http-500", 3},
		"long Retry-After": {answer(503, "", "Retry-After", "3600"), millrace.ErrUnavailable, "retry-after", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveModel(t, c.first)
			e := embedder(t, s, &EmbedderOptions{Retries: 2})
			got, err := e.Embed(t.Context(), false, []string{"one", "two"})
			if !errors.Is(err, c.is) || got != nil || millrace.ErrorCode(err) != c.says {
				t.Errorf("%v, %v, %v: code %q, want %q", got, err, c.is, millrace.ErrorCode(err), c.says)
			}
			if err != nil && (strings.Contains(err.Error(), testKey) || len(err.Error()) > 1000) {
				t.Errorf("the error contains the key: %v", err)
			}
			if n := s.requests(); n != c.requests {
				t.Errorf("%d requests, not %d", n, c.requests)
			}
		})
	}
}

func TestEmbedRecovers(t *testing.T) {
	s := serveModel(t, func(n int, _ embeddingsRequest, w http.ResponseWriter) bool {
		switch n {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		case 2:
			panic(http.ErrAbortHandler) // the connection breaks
		}
		return false
	})
	got, err := embedder(t, s, nil).Embed(t.Context(), false, []string{"a"})
	if err != nil || len(got) != 1 || s.requests() < 3 {
		t.Errorf("%v, %v after %d requests", got, err, s.requests())
	}
}

// A request for a question is not retried and has a short timeout, because a user waits.
func TestEmbedQuestion(t *testing.T) {
	busy := serveModel(t, func(_ int, _ embeddingsRequest, w http.ResponseWriter) bool {
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	if _, err := embedder(t, busy, nil).Embed(t.Context(), true, []string{"q"}); !errors.Is(err, millrace.ErrUnavailable) {
		t.Error(err)
	}
	if n := busy.requests(); n != 1 {
		t.Errorf("%d requests", n)
	}
	end := make(chan struct{})
	slow := serveModel(t, func(int, embeddingsRequest, http.ResponseWriter) bool { <-end; return true })
	defer close(end)
	e := embedder(t, slow, &EmbedderOptions{QueryTimeout: 20 * time.Millisecond})
	if _, err := e.Embed(t.Context(), true, []string{"q"}); !errors.Is(err, millrace.ErrUnavailable) || millrace.ErrorCode(err) != "timeout-response" {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := e.Embed(ctx, false, []string{"q"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestEmbedDown(t *testing.T) {
	s := serveModel(t, nil)
	e := embedder(t, s, &EmbedderOptions{Retries: -1})
	s.Close()
	if _, err := e.Embed(t.Context(), false, []string{"a"}); !errors.Is(err, millrace.ErrUnavailable) {
		t.Error(err)
	}
}

// A server with a small limit gets small batches, and a text that is too long
// for the model is truncated.
func TestEmbedTooLarge(t *testing.T) {
	s := serveModel(t, func(_ int, q embeddingsRequest, w http.ResponseWriter) bool {
		if len(q.Input) > 3 || len(strings.Join(q.Input, "")) > 600 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return true
		}
		return false
	})
	long := strings.Repeat("é", 1000)
	texts := []string{"a", "b", "c", "d", "e", "f", long}
	got, err := embedder(t, s, nil).Embed(t.Context(), false, texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		want := wantVector(text)
		if text == long {
			want = wantVector(long[:500])
		}
		if diff := cmp.Diff(want, got[i]); diff != "" {
			t.Error(i, diff)
		}
	}
	_, err = embedder(t, s, nil).Embed(t.Context(), false, []string{strings.Repeat("x", 1<<20)})
	if !errors.Is(err, millrace.ErrTooLarge) {
		t.Error(err)
	}
}

func TestEmbedderShowsNoKey(t *testing.T) {
	e := embedder(t, serveModel(t, nil), nil)
	if s := fmt.Sprintf("%v %+v %#v", e, e, *e); strings.Contains(s, testKey) {
		t.Error("the key is shown")
	}
}
