package search

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// EmbedderOptions configure an [Embedder]. The zero value works.
type EmbedderOptions struct {
	Key string // bearer token, or "". Errors and logs never contain it.
	// DocumentPrefix and QueryPrefix are prepended to passages and questions. Some models need
	// them, such as "search_query: ".
	DocumentPrefix, QueryPrefix string
	// Dimensions is the size of vectors to request. A vector of another size is an error. If
	// zero, the model chooses the size.
	Dimensions int
	Batch      int           // maximum number of texts in a request. If zero, 32.
	Timeout    time.Duration // timeout of a request for passages. If zero, 60 s.
	// QueryTimeout is the timeout of a request for questions, which is not retried because
	// a user waits. If zero, 3 s.
	QueryTimeout time.Duration
	Retries      int           // maximum number of retries of a request for passages. If zero, 3; if negative, none.
	Backoff      time.Duration // pause before the first retry, doubled each time. If zero, 1 s.
}

// Embedder is a client of the embeddings API of OpenAI, Ollama, vLLM and Text Embeddings
// Inference (POST /v1/embeddings). It is safe for concurrent use.
type Embedder struct {
	client    http.Client
	endpoint  string
	redacted  string // the endpoint without secrets
	model     string
	name      string
	o         EmbedderOptions                                  // options without Key
	authorize func(*http.Request)                              // a closure, so printing the struct does not show the key
	hide      func(string) string                              // removes the key from a string
	wait      func(ctx context.Context, d time.Duration) error // waits between attempts
}

// NewEmbedder returns a client for one model. endpoint is the base of the API, such as
// "http://localhost:11434/v1", or the URL of its "/embeddings" resource. If client is nil,
// NewEmbedder creates one. The Embedder never follows redirects. If the endpoint is not an absolute
// HTTP URL, model is empty, or the key contains a line break, NewEmbedder returns ErrInvalid.
func NewEmbedder(client *http.Client, endpoint, model string, o *EmbedderOptions) (*Embedder, error) {
	if o == nil {
		o = &EmbedderOptions{}
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// Omit the URL from the error, because it may contain a password.
		return nil, fmt.Errorf("embedder: the endpoint is not an absolute http or https URL: %w", millrace.ErrInvalid)
	}
	if model == "" {
		return nil, fmt.Errorf("embedder %s: missing model name: %w", redactedURL(u), millrace.ErrInvalid)
	}
	if strings.ContainsAny(o.Key, "\r\n") {
		return nil, fmt.Errorf("embedder %s: the key has a line break: %w", redactedURL(u), millrace.ErrInvalid)
	}
	if !strings.HasSuffix(u.Path, "/embeddings") {
		u = u.JoinPath("embeddings")
	}
	e := &Embedder{endpoint: u.String(), redacted: redactedURL(u), model: model, name: embedderName(model, o), o: *o, wait: pause}
	if client != nil {
		e.client = *client
	}
	e.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	key := o.Key
	e.o.Key = ""
	e.authorize = func(r *http.Request) {
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
	}
	e.hide = func(s string) string {
		if key == "" {
			return s
		}
		return strings.ReplaceAll(s, key, "…")
	}
	e.o.Batch = cmp.Or(max(o.Batch, 0), 32)
	if o.Timeout <= 0 {
		e.o.Timeout = time.Minute
	}
	if o.QueryTimeout <= 0 {
		e.o.QueryTimeout = 3 * time.Second
	}
	if o.Retries == 0 {
		e.o.Retries = 3
	}
	if o.Backoff <= 0 {
		e.o.Backoff = time.Second
	}
	return e, nil
}

// redactedURL returns a URL without the parts that may contain secrets: user information and query.
func redactedURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// embedderName returns the name under which the index stores vectors. Vectors depend on their size
// and the prefix of passages, so the name contains the size and a hash of the prefix. It omits the
// prefix of questions, which may change.
func embedderName(model string, o *EmbedderOptions) string {
	name := model
	if o.Dimensions > 0 {
		name += "@" + strconv.Itoa(o.Dimensions)
	}
	if o.DocumentPrefix != "" {
		sum := sha256.Sum256([]byte(o.DocumentPrefix))
		name += "#" + hex.EncodeToString(sum[:4])
	}
	return name
}

// Model returns the name of the model. If o.Dimensions or o.DocumentPrefix is set, the name also
// contains the size of the vectors or a hash of the prefix.
func (e *Embedder) Model() string { return e.name }

// Embed returns the vectors of texts in order; see index.Embedder. Embed does not send texts
// without a visible character; their vector is nil. If the server rejects a batch as too large,
// Embed splits it. If the server rejects a single text as too long, Embed truncates the text.
func (e *Embedder) Embed(ctx context.Context, query bool, texts []string) ([][]float32, error) {
	prefix := e.o.DocumentPrefix
	if query {
		prefix = e.o.QueryPrefix
	}
	out := make([][]float32, len(texts))
	job := job{query: query, size: e.o.Dimensions}
	var at []int // index in texts of each input
	var input []string
	for i, t := range texts {
		if strings.TrimSpace(t) != "" {
			at, input = append(at, i), append(input, prefix+strings.ToValidUTF8(t, "\uFFFD"))
		}
		if len(input) == e.o.Batch || i == len(texts)-1 && len(input) > 0 {
			vectors, err := e.batch(ctx, &job, input)
			if err != nil {
				return nil, fmt.Errorf("embedder %s, model %q: %w", e.redacted, e.model, err)
			}
			for j, v := range vectors {
				out[at[j]] = v
			}
			at, input = at[:0], input[:0]
		}
	}
	return out, nil
}

// job is one call of Embed.
type job struct {
	query bool
	size  int // size of all vectors, or 0 if unknown
}
