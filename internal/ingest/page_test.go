package ingest

import (
	"errors"
	"net/http"
	"testing"

	"github.com/millrace/millrace"
)

func TestPageNeverLeavesHTTPS(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: http.NewFileTransport(nil)} // the client fails every request
	_, err := Page(t.Context(), client, "https://example.com/", "http://example.com/page")
	if !errors.Is(err, millrace.ErrForbidden) {
		t.Error(err)
	}
}
