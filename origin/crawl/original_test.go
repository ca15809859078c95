package crawl

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

func TestOriginalCoding(t *testing.T) {
	for _, o := range []original{
		{},
		{body: []byte("<p>x")},
		{contentType: "text/html; charset=iso-8859-1", robots: []string{"noindex", "", "bot: nofollow"}, modified: 1_700_000_000, body: []byte("\x01\x00é")},
	} {
		data := o.encode()
		got, err := parseOriginal(data)
		if diff := cmp.Diff(o, got, cmp.AllowUnexported(original{}), cmp.Comparer(bytes.Equal)); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", data, err, diff)
		}
		for n := range len(data) - len(o.body) {
			if got, err := parseOriginal(data[:n]); !errors.Is(err, millrace.ErrInvalid) {
				t.Errorf("%q is read as %+v, %v", data[:n], got, err)
			}
		}
	}
	most := original{contentType: "text/html"}
	most.body = make([]byte, millrace.MaxOriginal-len(most.encode()))
	if n := len(most.encode()); n != millrace.MaxOriginal {
		t.Errorf("the largest original has %d bytes", n)
	}
	if most.body = append(most.body, ' '); most.encode() != nil {
		t.Error("an original that is too large was encoded")
	}
	for _, data := range []string{"\x02", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x01\x00\x09text"} {
		if o, err := parseOriginal([]byte(data)); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%q is read as %+v, %v", data, o, err)
		}
	}
}

func FuzzParseOriginal(f *testing.F) {
	f.Add((&original{}).encode())
	f.Add((&original{contentType: "text/html", robots: []string{"noindex"}, modified: 1, body: []byte("<p>")}).encode())
	f.Add([]byte("\x01\x00\x00\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := parseOriginal(data)
		if err != nil {
			return
		}
		again, err := parseOriginal(o.encode())
		if diff := cmp.Diff(o, again, cmp.AllowUnexported(original{}), cmp.Comparer(bytes.Equal)); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}
