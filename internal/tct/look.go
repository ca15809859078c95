package tct

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

const (
	// headBytes is how much of a list, or of a document, is looked at, as it is
	// sent.
	headBytes = 256 << 10
	samples   = 3 // documents that are got
	// maxItems is the most that a list is taken to have, whatever its server says.
	maxItems = 1 << 28
)

// Look is what a look at the lists of a site, and at some of its documents,
// has found.
type Look struct {
	Lists    int   // that were looked at
	Items    int   // that they have
	Bytes    int64 // that they have, as they are sent
	Unending bool  // one goes on, and its server does not say how far: Items and Bytes are those seen
	Guessed  bool  // one goes on: Items is by the length of its beginning
	Free     int   // of the lists, those that have validators

	Documents int             // that were got
	Document  int64           // bytes of one as it is sent, on average
	Known     millrace.Fields // that they speak for
	Odd       int             // of the documents, those with another validator than the list names: each is asked for whenever the list changes

	items []Item // of the first list that has some
}

// Scan walks a list and gives its items to visit, as the scanners of both
// drafts do.
type Scan func(r io.Reader, visit func(i int, it *Item, err error) bool) error

// List looks at a list, which is one of the origins', and closes it. An error
// is that of its server, or of the scan: of the beginning of a list that goes
// on only if that has no items.
func (l *Look) List(resp *http.Response, origins []string, scan Scan) error {
	b, err := fetch.ReadBeginning(resp, headBytes)
	if err != nil {
		return err
	}
	n := 0
	var items []Item
	err = scan(bytes.NewReader(b.Content), func(_ int, it *Item, err error) bool {
		if err == nil {
			if is, bad := it.Check(origins); bad == nil {
				n++
				items = append(items, Item{MURL: is.MURL, ETag: is.Version()})
			}
		}
		return true
	})
	if err != nil && (b.Whole || n == 0) {
		return err
	}
	size := b.Size
	switch {
	case b.Whole:
	case size < 0:
		l.Unending = true
		size = b.Read
	default:
		l.Guessed = true
		n = int(min(maxItems, float64(n)*float64(size)/float64(b.Read)))
	}
	l.Lists++
	l.Items += n
	l.Bytes += size
	if fetch.ValidatorsOf(resp) != (fetch.Validators{}) {
		l.Free++
	}
	if len(l.items) == 0 {
		l.items = items
	}
	return nil
}

// Sample gets a few documents of the first list. The error is that of the first
// of them, if none can be had or is one.
func (l *Look) Sample(get func(murl string) (*http.Response, error), page func(body []byte) (*millrace.Page, error)) error {
	n := len(l.items)
	at := []int{n / 2, 0, n - 1}[:min(n, samples)]
	var first error
	var size int64
	for _, i := range at {
		b, tag, err := l.document(l.items[i].MURL, get)
		if err == nil && b.Whole {
			var p *millrace.Page
			if p, err = page(b.Content); err == nil {
				l.Known |= p.Known
			}
		}
		if err != nil {
			if errors.Is(err, millrace.ErrUnavailable) {
				return err
			}
			if first == nil {
				first = err
			}
			continue
		}
		l.Documents++
		if tag != "" && !millrace.SameVersion(tag, l.items[i].ETag) {
			l.Odd++
		}
		size += min(max(b.Size, b.Read), 4<<30)
	}
	l.items = nil
	if l.Documents == 0 {
		return first
	}
	l.Document = size / int64(l.Documents)
	if l.Known == 0 {
		l.Known = coreFields
	}
	return nil
}

func (l *Look) document(murl string, get func(murl string) (*http.Response, error)) (b *fetch.Beginning, tag string, err error) {
	resp, err := get(murl)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, "", err
	}
	if final, err := canon.URL(resp.Request.URL.String()); err != nil || canon.Origin(final) != canon.Origin(murl) {
		return nil, "", fmt.Errorf("%s: it redirects to another origin: %w", murl, millrace.ErrInvalid)
	}
	b, err = fetch.ReadBeginning(resp, headBytes)
	return b, resp.Header.Get("ETag"), err
}

// Asked gives how many requests of pages a refresh takes for which the list has
// changed: those for documents that never have the validators of the list.
func (l *Look) Asked(pages int64) int64 {
	return pages * int64(l.Odd) / int64(max(1, l.Documents))
}

// Basis says in words what a look rests on.
func (l *Look) Basis() string {
	s := "the list"
	if l.Guessed || l.Unending {
		s = "the beginning of the list"
	}
	if l.Unending {
		s += ", which is longer"
	}
	if l.Documents < l.Items {
		s += fmt.Sprintf(", and %d of its documents", l.Documents)
	}
	return s
}
