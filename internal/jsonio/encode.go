package jsonio

import (
	"bytes"
	stdjson "encoding/json"
)

// Encode returns the served form of a document: JSON on one line, without HTML escapes. It
// panics for a value without a JSON form.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := stdjson.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("jsonio: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
