package push

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/outbox"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// DefaultIndexNow is the endpoint for all participating search engines.
const DefaultIndexNow = "https://api.indexnow.org/indexnow"

// Limits of the protocol.
const (
	maxURLs          = 10_000
	minKey, maxKey   = 8, 128
	maxBytes         = 8 << 20     // maximum size of the events of one submission, in bytes
	indexNowReceiver = "indexnow " // prefix of the receiver's name in the store
)

// IndexNow is an endpoint that receives the URLs of changed pages.
type IndexNow struct {
	url  string
	key  string
	base string // base URL; only pages below it are submitted
	most int    // maximum number of pages per submission
}

// NewIndexNow returns an IndexNow for an endpoint. If endpoint is empty, it uses
// [DefaultIndexNow]. key is the key of the site. base is the base URL of its pages, where the
// site serves the key file ([IndexNow.Path]). If an argument is invalid, NewIndexNow returns
// [millrace.ErrInvalid].
func NewIndexNow(endpoint, key, base string) (*IndexNow, error) {
	if endpoint == "" {
		endpoint = DefaultIndexNow
	}
	endpoint, err := checkEndpoint("IndexNow", endpoint)
	if err != nil {
		return nil, err
	}
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	if base, err = canon.URL(base); err != nil {
		return nil, err
	}
	return &IndexNow{url: endpoint, key: key, base: strings.TrimSuffix(base, "/") + "/", most: maxURLs}, nil
}

// NewKey returns a new key.
func NewKey(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("IndexNow key: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// StoredKey returns the key of a site. It creates the key on first use.
func StoredKey(ctx context.Context, s store.State, site string) (string, error) {
	key, err := state.Make(ctx, s, site, "indexnow/key",
		func(key []byte) bool { return CheckKey(string(key)) == nil },
		func() ([]byte, error) {
			key, err := NewKey(rand.Reader)
			return []byte(key), err
		})
	if err != nil {
		return "", fmt.Errorf("IndexNow key: %w", err)
	}
	return string(key), nil
}

// CheckKey returns [millrace.ErrInvalid] unless the key consists of 8 to 128 letters, digits
// and dashes.
func CheckKey(key string) error {
	good := len(key) >= minKey && len(key) <= maxKey
	for _, c := range []byte(key) {
		good = good && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-')
	}
	if !good {
		return fmt.Errorf("invalid IndexNow key, want %d to %d letters, digits and dashes: %w", minKey, maxKey, millrace.ErrInvalid)
	}
	return nil
}

// Path returns the path of the key file under the base URL.
func (n *IndexNow) Path() string { return "/" + n.key + ".txt" }

// Text returns the content of the key file.
func (n *IndexNow) Text() string { return n.key }

// submission is the body of a request.
type submission struct {
	Host        string   `json:"host"`
	Key         string   `json:"key"`
	KeyLocation string   `json:"keyLocation"`
	URLList     []string `json:"urlList"`
}

// submit submits changed pages. The key file is valid for all pages below its folder.
func (n *IndexNow) submit(ctx context.Context, client *http.Client, urls []string) error {
	base, err := url.Parse(n.base)
	if err != nil {
		return err
	}
	body, err := json.Marshal(submission{base.Host, n.key, n.base + strings.TrimPrefix(n.Path(), "/"), urls})
	if err != nil {
		return err
	}
	return post(ctx, client, n.url, "application/json; charset=utf-8", body)
}

// engine is an IndexNow endpoint that receives submissions.
type engine struct {
	pusher *Pusher
	*IndexNow
	box *outbox.Outbox // nil before the first flush
}

// flush submits the changes since the last submission. For a new endpoint, the first call submits
// nothing.
func (e *engine) flush(ctx context.Context) (sent bool, err error) {
	if e.box == nil {
		box := &outbox.Outbox{
			Site: e.pusher.Site, State: e.pusher.State, Name: e.pusher.Name, Receiver: indexNowReceiver + e.url, MaxEvents: e.most, MaxBytes: maxBytes, Deliver: e.deliver,
		}
		if err := box.Skip(ctx); err != nil {
			return false, err
		}
		e.box = box
	}
	n, err := e.box.Flush(ctx)
	return n > 0, err
}

// deliver submits the pages of events.
func (e *engine) deliver(ctx context.Context, lines [][]byte) error {
	var urls []string
	for _, line := range lines {
		var event outbox.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}
		if strings.HasPrefix(event.URL, e.base) {
			urls = append(urls, event.URL)
		}
	}
	if len(urls) == 0 {
		return nil
	}
	log := e.pusher.Logger.With("receiver", fetch.HostOf(e.url), "pages", len(urls))
	err := e.submit(ctx, e.pusher.Client, urls)
	status, ok := errors.AsType[*fetch.StatusError](err)
	switch {
	case err == nil:
		log.InfoContext(ctx, "changed pages submitted")
		return nil
	case !ok:
		return err
	}
	switch status.Code {
	case http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %w", millrace.ErrTooLarge, err)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		// Skip these pages: the endpoint would reject them again, and they would block later
		// pages.
		log.ErrorContext(ctx, "changed pages refused; skipping them", "url", urls[0], "err", err,
			"reason", "pages are outside the folder of the key file, or the key belongs to another site")
		return nil
	case http.StatusForbidden:
		return fmt.Errorf("%w; check that %s is publicly reachable", err, strings.TrimSuffix(e.base, "/")+e.Path())
	}
	return err
}
