package markdown

import (
	"context"
	"fmt"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/origin"
)

// Origin returns the description of this origin. Several files may determine one page, so
// single pages cannot be read.
func Origin() origin.Origin {
	return origin.Origin{
		Name: "markdown", Title: "a folder of Markdown", Folder: true, SingleStream: true, Built: Built,
		Detect: func(_ context.Context, _ *http.Client, dir string) (string, error) {
			if !Is(dir) {
				return "", fmt.Errorf("%s: %w: not a Markdown site", dir, millrace.ErrNotFound)
			}
			return dir, nil
		},
		Open: func(dir string, o *origin.Options) (*origin.Source, error) {
			f, err := New(dir, &Options{Base: o.Base, Rules: o.Rules, Logger: o.Logger})
			if err != nil {
				return nil, err
			}
			return &origin.Source{Source: f, Watch: f.Watch, SiteTitle: f.SiteTitle, Close: f.Close}, nil
		},
	}
}
