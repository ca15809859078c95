package markdown

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/origin/origintest"
)

// testFolder is a folder of Markdown that the suite modifies: without a generator, or a Hugo
// site whose posts have permalinks.
type testFolder struct {
	top, dir string
	hugo     bool
}

func newTestFolder(t testing.TB, hugo bool) *testFolder {
	top := t.TempDir()
	s := &testFolder{top, filepath.Join(top, "site"), hugo}
	err := os.MkdirAll(filepath.Join(s.dir, "content", "posts"), 0o755)
	if hugo && err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "config.toml"), []byte("baseURL = 'https://mill.example/'\n[permalinks]\nposts = '/:year/:slug/'\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *testFolder) Address() string { return s.dir }
func (s *testFolder) Base() string    { return "https://mill.example/" }

func (s *testFolder) URL(name string) string {
	if s.hugo {
		return "/2026/" + name + "/"
	}
	return "/content/posts/" + name + "/"
}

// name returns the URL of the page in the stream.
func (s *testFolder) name(name string) string { return "/content/posts/" + name + ".md" }

func (s *testFolder) file(name string) string {
	return filepath.Join(s.dir, filepath.FromSlash(s.name(name)))
}

// put writes a file outside of the folder and moves it into the folder.
func (s *testFolder) put(name, text string) error {
	draft := filepath.Join(s.top, "draft")
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(draft, s.file(name))
}

func (s *testFolder) Put(name, title, text string) error {
	if s.hugo {
		return s.put(name, "---\ntitle: "+title+"\ndate: 2026-02-03\nslug: "+name+"\n---\n\n"+text+"\n")
	}
	return s.put(name, "# "+title+"\n\n"+text+"\n")
}

func (s *testFolder) Delete(name string) error { return os.Remove(s.file(name)) }

// Break breaks the front matter, like an editor who has not finished.
func (s *testFolder) Break(name string) error {
	if err := os.Rename(s.file(name), filepath.Join(s.top, name)); err != nil {
		return err
	}
	return s.put(name, "---\ntitle: [\n---\n\nText.\n")
}

func (s *testFolder) Repair(name string) error {
	return os.Rename(filepath.Join(s.top, name), s.file(name))
}

// Trouble moves the whole folder away, or back.
func (s *testFolder) Trouble(t origintest.Trouble) error {
	switch away := filepath.Join(s.top, "away"); t {
	case origintest.Working:
		return os.Rename(away, s.dir)
	case origintest.Down:
		return os.Rename(s.dir, away)
	}
	return errors.ErrUnsupported
}

func (s *testFolder) Unreadable() ([]string, error) {
	err := errors.Join(
		s.put("unready", "---\ntitle: Unready\ndraft: true\ndate: 2026-02-03\n---\n\nA draft.\n"),
		s.put("broken", "+++\ntitle = \n+++\n\nText.\n"),
		os.WriteFile(s.file("empty"), nil, 0o600),
		os.Symlink("nowhere", s.file("dangling")))
	return []string{s.name("unready"), s.name("broken"), s.name("empty"), s.name("dangling")}, err
}

func TestOrigin(t *testing.T) {
	for kind, hugo := range map[Kind]bool{Plain: false, Hugo: true} {
		t.Run(string(kind), func(t *testing.T) {
			origintest.Run(t, origintest.Origin{
				New: func(t testing.TB) origintest.Site { return newTestFolder(t, hugo) },
				Open: func(t testing.TB, place string, _ origintest.KnownRefs) (millrace.Source, error) {
					f, err := New(place, nil)
					if err != nil {
						return nil, err
					}
					if f.Kind() != kind {
						t.Errorf("the kind of the folder is %s", f.Kind())
					}
					t.Cleanup(func() { f.Close() })
					// One hour ahead, because files changed within the last two seconds have
					// no version yet.
					f.now = func() time.Time { return time.Now().Add(time.Hour) }
					return f, nil
				},
			})
		})
	}
}
