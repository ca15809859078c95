package commonmark

import (
	"bytes"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

var renderer = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList))

// HTML returns the HTML of a text, without raw HTML and without links that run code. The error is
// [millrace.ErrTooLarge].
func HTML(text []byte) ([]byte, error) {
	text, err := Bounded(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = renderer.Convert(escapeMarks(text), &out)
	return out.Bytes(), err
}
