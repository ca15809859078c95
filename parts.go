package millrace

import (
	"bytes"
	"context"
	"io"
	"iter"
)

// Parts splits the bytes of a large document into pieces. A change to a page rewrites only the
// parts that contain the page. The document is Head, the parts in the order of their keys with
// Separator between them, and Tail.
type Parts struct {
	// Version identifies inputs of the parts, such as the site's base, but not the pages and the
	// protocol's options. If Version changes, all parts are rewritten.
	Version   string
	Head      []byte
	Separator []byte
	Tail      []byte
	// Empty is the document if there are no parts. If nil, the document is Head and Tail.
	Empty []byte
	// After yields the parts whose key is greater than the given key, in bytewise order of the
	// keys. Keys are unique and not empty. The Body of a part is valid until the next part is
	// yielded.
	After func(ctx context.Context, key string) iter.Seq2[Part, error]
	// Changed returns the keys of the parts that a change to the page at url may create, change or
	// delete. url is absolute.
	Changed func(url string) []string
}

// SinglePart returns the Parts of a document that is written in one piece. The document is
// rewritten only when version changes.
func SinglePart(version string, write func(ctx context.Context, w io.Writer) error) *Parts {
	return &Parts{
		Version: version,
		Changed: func(string) []string { return nil },
		After: func(ctx context.Context, key string) iter.Seq2[Part, error] {
			return func(yield func(Part, error) bool) {
				if key != "" {
					return
				}
				var b bytes.Buffer
				err := write(ctx, &b)
				yield(Part{Key: "whole", Body: b.Bytes()}, err)
			}
		},
	}
}

// Part is a piece of a large document.
type Part struct {
	Key  string
	Body []byte
}

// Write writes the document.
func (p *Parts) Write(ctx context.Context, w io.Writer) error {
	n := 0
	for part, err := range p.After(ctx, "") {
		if err != nil {
			return err
		}
		before := p.Separator
		if n == 0 {
			before = p.Head
		}
		n++
		if _, err := w.Write(before); err != nil {
			return err
		}
		if _, err := w.Write(part.Body); err != nil {
			return err
		}
	}
	end := p.Tail
	if n == 0 {
		end = p.WithoutParts()
	}
	_, err := w.Write(end)
	return err
}

// WithoutParts returns the document for the case that there are no parts.
func (p *Parts) WithoutParts() []byte {
	if p.Empty != nil {
		return p.Empty
	}
	return append(p.Head[:len(p.Head):len(p.Head)], p.Tail...)
}
