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

// EmbedderOptions are what [NewEmbedder] may be told. The zero value works.
type EmbedderOptions struct {
	Key string // sent as a bearer token; "" = none. No error and no log shows it
	// DocumentPrefix and QueryPrefix stand before every passage and every
	// question, as some models want it, such as "search_query: ".
	DocumentPrefix, QueryPrefix string
	// Dimensions asks the model for vectors of this size, and refuses others;
	// 0 = whatever the model gives.
	Dimensions int
	Batch      int           // the most texts of one request; 0 = 32
	Timeout    time.Duration // of one request for passages; 0 = 60 s
	// QueryTimeout is for one request for questions: somebody waits for it,
	// so it is not repeated either. 0 = 3 s.
	QueryTimeout time.Duration
	Retries      int           // of a request for passages that may do better later; 0 = 3, -1 = none
	Backoff      time.Duration // before the first of them, doubled each time; 0 = 1 s
}

// Embedder asks a server for vectors by the API that OpenAI, Ollama, vLLM and
// Text Embeddings Inference have in common (POST /v1/embeddings). It is safe
// for concurrent use.
type Embedder struct {
	client    http.Client
	endpoint  string
	shown     string // the endpoint without what may be secret
	model     string
	name      string
	o         EmbedderOptions                                  // without Key
	authorize func(*http.Request)                              // a closure, so that no print of the struct shows the key
	hide      func(string) string                              // takes the key out of a text
	wait      func(ctx context.Context, d time.Duration) error // between attempts
}

// NewEmbedder returns the client of one model. endpoint is the API's base, such
// as "http://localhost:11434/v1", or the whole URL, which ends with
// "/embeddings". client may be nil, for one of its own; redirects are not
// followed in any case. ErrInvalid: the endpoint is no absolute HTTP URL, or
// there is no model.
func NewEmbedder(client *http.Client, endpoint, model string, o *EmbedderOptions) (*Embedder, error) {
	if o == nil {
		o = &EmbedderOptions{}
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The text is not repeated: it may hold a password.
		return nil, fmt.Errorf("embedder: the endpoint is no absolute URL of http or https: %w", millrace.ErrInvalid)
	}
	if model == "" {
		return nil, fmt.Errorf("embedder %s: no model is named: %w", shownURL(u), millrace.ErrInvalid)
	}
	if strings.ContainsAny(o.Key, "\r\n") {
		return nil, fmt.Errorf("embedder %s: the key has a line break: %w", shownURL(u), millrace.ErrInvalid)
	}
	if !strings.HasSuffix(u.Path, "/embeddings") {
		u = u.JoinPath("embeddings")
	}
	e := &Embedder{endpoint: u.String(), shown: shownURL(u), model: model, name: embedderName(model, o), o: *o, wait: pause}
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

// shownURL returns what of a URL can be shown.
func shownURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// embedderName tells apart what is not to be compared: vectors of passages
// depend on the prefix and the size too. The prefix of questions may change.
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

// Model names the model, the size asked for and the prefix of documents.
func (e *Embedder) Model() string { return e.name }

// Embed returns the vectors of texts, in their order; see index.Embedder. A
// text of white space only gets nil and is not sent. A batch that the server
// finds too large is sent in halves, and a single text that it finds too long
// is cut.
func (e *Embedder) Embed(ctx context.Context, query bool, texts []string) ([][]float32, error) {
	prefix := e.o.DocumentPrefix
	if query {
		prefix = e.o.QueryPrefix
	}
	out := make([][]float32, len(texts))
	job := job{query: query, size: e.o.Dimensions}
	var at []int // in texts, of each of input
	var input []string
	for i, t := range texts {
		if strings.TrimSpace(t) != "" {
			at, input = append(at, i), append(input, prefix+strings.ToValidUTF8(t, "\uFFFD"))
		}
		if len(input) == e.o.Batch || i == len(texts)-1 && len(input) > 0 {
			vectors, err := e.batch(ctx, &job, input)
			if err != nil {
				return nil, fmt.Errorf("embedder %s, model %q: %w", e.shown, e.model, err)
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
	size  int // of all its vectors; 0 = not known yet
}
