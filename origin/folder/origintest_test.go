package folder

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/origin/origintest"
)

// testFolder is a folder that the suite modifies.
type testFolder struct{ top, dir string }

func (s *testFolder) Address() string        { return s.dir }
func (s *testFolder) Base() string           { return "https://mill.example/" }
func (s *testFolder) URL(name string) string { return "/" + name + ".html" }
func (s *testFolder) file(name string) string {
	return filepath.Join(s.dir, name+".html")
}

// Put writes a file outside of the folder and moves it into the folder.
func (s *testFolder) Put(name, title, text string) error {
	page := `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>` + title + `</title></head><body>
<nav><a href="/">Home</a></nav><main><h1>` + title + `</h1><p>` + text + `</p></main></body></html>`
	draft := filepath.Join(s.top, "draft")
	if err := os.WriteFile(draft, []byte(page), 0o600); err != nil {
		return err
	}
	return os.Rename(draft, s.file(name))
}

func (s *testFolder) Delete(name string) error { return os.Remove(s.file(name)) }

// Break empties a file, like a generator that has just begun to write it.
func (s *testFolder) Break(name string) error {
	if err := os.Rename(s.file(name), filepath.Join(s.top, name)); err != nil {
		return err
	}
	return os.WriteFile(s.file(name), nil, 0o600)
}

func (s *testFolder) Repair(name string) error {
	return os.Rename(filepath.Join(s.top, name), s.file(name))
}

// Trouble moves the whole folder away, or back.
func (s *testFolder) Trouble(t origintest.Trouble) error {
	switch away := filepath.Join(s.top, "away"); t {
	case origintest.Working:
		if _, err := os.Stat(s.dir); err == nil {
			return nil
		}
		return os.Rename(away, s.dir)
	case origintest.Down:
		return os.Rename(s.dir, away)
	}
	return errors.ErrUnsupported
}

func (s *testFolder) Unreadable() ([]string, error) {
	for name, text := range map[string]string{"_draft": "a draft", "404": "no such page", "empty": ""} {
		if err := os.WriteFile(s.file(name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.Symlink("nowhere", s.file("dangling")); err != nil {
		return nil, err
	}
	return []string{"/_draft.html", "/404.html", "/empty.html", "/dangling.html"}, nil
}

func TestOrigin(t *testing.T) {
	origintest.Run(t, origintest.Origin{
		New: func(t testing.TB) origintest.Site {
			top := t.TempDir()
			s := &testFolder{top, filepath.Join(top, "site")}
			must(t, os.Mkdir(s.dir, 0o755))
			return s
		},
		Open: func(t testing.TB, place string, _ origintest.KnownRefs) (millrace.Source, error) {
			f, err := New(place, nil)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { f.Close() })
			// One hour ahead, because files changed within the last two seconds have no
			// version yet.
			f.now = func() time.Time { return time.Now().Add(time.Hour) }
			return f, nil
		},
	})
}
