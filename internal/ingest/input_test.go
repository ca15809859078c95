package ingest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

func TestReadPage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mill")
	file := filepath.Join(dir, "index.html")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("<h1>The wheel</h1>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, address, url, data string }{
		{file, "", UnknownBase + "mill/", "<h1>The wheel</h1>"},
		{file, "https://mill.example/wheel", "https://mill.example/wheel", "<h1>The wheel</h1>"},
		{"-", "", UnknownBase + "-", "\x7fELF\x00"},
	} {
		p, err := ReadPage(t.Context(), nil, tt.name, tt.address, strings.NewReader("\x7fELF\x00"))
		if err != nil || p.URL != tt.url || string(p.Data) != tt.data {
			t.Errorf("%s: %+v, %v", tt.name, p, err)
			continue
		}
		if _, err := p.Extract(t.Context(), nil); tt.name == "-" && (!errors.Is(err, millrace.ErrInvalid) || !strings.HasPrefix(err.Error(), "page -: ") || strings.Contains(err.Error(), UnknownBase)) {
			t.Error(err)
		}
	}
	if _, err := ReadPage(t.Context(), nil, filepath.Join(dir, "absent"), "", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
