package jsonio

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// All functions accept the same documents and read the same values.
func FuzzReader(f *testing.F) {
	for _, c := range broken {
		f.Add([]byte(c.doc))
	}
	f.Add([]byte(`{"items":[{"cUrl":"a","mUrl":"b","etag":"c"},{}],"version":1}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var decoded, walked any
		err := Unmarshal(doc, nil, &decoded)
		if err == nil && !json.Valid(doc) {
			t.Fatalf("%q is accepted", doc)
		}
		if e := NewReader(bytes.NewReader(doc), nil).Decode(&walked); (e == nil) != (err == nil) {
			t.Fatalf("%q: Unmarshal %v, Reader %v", doc, err, e)
		}
		if !cmp.Equal(decoded, walked) && err == nil {
			t.Fatalf("%q: Unmarshal %v, Reader %v", doc, decoded, walked)
		}
		if e := NewReader(bytes.NewReader(doc), nil).Skip(); (e == nil) != (err == nil) {
			t.Fatalf("%q: Unmarshal %v, Skip %v", doc, err, e)
		}
		var deep any
		e := tree(NewReader(iotest.HalfReader(bytes.NewReader(doc)), nil), &deep)
		if (e == nil) != (err == nil) {
			t.Fatalf("%q: Unmarshal %v, walk %v", doc, err, e)
		}
		if err == nil && !cmp.Equal(decoded, deep) {
			t.Fatalf("%q: Unmarshal %v, walk %v", doc, decoded, deep)
		}
	})
}

// tree reads the whole current value with a Reader.
func tree(r *Reader, v *any) error {
	object := map[string]any{}
	for name, err := range r.Members() {
		if err != nil && r.err == nil && name == "" && r.waiting {
			break // not an object
		}
		if err != nil {
			return err
		}
		var in any
		if err := tree(r, &in); err != nil {
			return err
		}
		object[name] = in
	}
	*v = object
	if !r.waiting {
		return r.err
	}
	array := []any{}
	for _, err := range r.Elements() {
		if err != nil && r.err == nil && r.waiting {
			break // not an array
		}
		if err != nil {
			return err
		}
		var in any
		if err := tree(r, &in); err != nil {
			return err
		}
		array = append(array, in)
	}
	*v = array
	if !r.waiting {
		return r.err
	}
	*v = nil
	return r.Decode(v)
}

func BenchmarkWalk(b *testing.B) {
	doc, err := io.ReadAll(list(10_000))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			r := NewReader(bytes.NewReader(doc), nil)
			for name, err := range r.Members() {
				if err != nil {
					b.Fatal(err)
				}
				if name != "items" {
					continue
				}
				for _, err := range r.Elements() {
					var it item
					if err == nil {
						err = r.Decode(&it)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			var v struct{ Items []item }
			if err := json.Unmarshal(doc, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("skip", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			if err := NewReader(bytes.NewReader(doc), nil).Skip(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("whole", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			var v struct {
				Items []item `json:"items"`
			}
			if err := Unmarshal(doc, nil, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
