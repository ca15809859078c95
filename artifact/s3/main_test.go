package s3

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/artifact/artifacttest"
	"github.com/millrace/millrace/internal/s3server"
	"github.com/millrace/millrace/internal/testkit"
)

func TestMain(m *testing.M) {
	artifacttest.Child(openChild)
	testkit.Main(m)
}

// openChild opens a store for artifacttest.Crash. place is a URL, a space and a folder.
func openChild(place string) (artifact.Store, error) {
	url, folder, _ := strings.Cut(place, " ")
	return Open(context.Background(), url, "crash", folder, nil)
}

// server starts a server, and sets the credentials of its administrator.
func server(t *testing.T) *s3server.Server {
	t.Helper()
	testkit.Real(t, s3server.Program)
	s, err := s3server.New(t.Context(), os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("AWS_ACCESS_KEY_ID", s3server.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3server.Secret)
	if _, err := s.Create(t.Context(), "bucket", ""); err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens a store with an empty cache.
func open(t testing.TB, url, owner string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, owner, filepath.Join(t.TempDir(), "cache"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestRealStore runs the suite with a real server.
func TestRealStore(t *testing.T) {
	s := server(t)
	var n atomic.Int32
	artifacttest.Run(t, func(t testing.TB) artifact.Store {
		return open(t, s.URL("bucket", fmt.Sprint("store-", n.Add(1))), "one")
	})
}

// TestRealTwoStores checks that two stores with separate caches see each other's changes.
func TestRealTwoStores(t *testing.T) {
	s := server(t)
	url := s.URL("bucket", "two")
	one, two := open(t, url, "same"), open(t, url, "same")
	put := func(s *Store, name, content string) {
		t.Helper()
		if err := s.Put(t.Context(), name, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	put(one, "a/b", "one")
	put(two, "a/b", "second")
	put(two, "large", strings.Repeat("x", 3<<20))
	for _, s := range []*Store{one, two} {
		for name, size := range map[string]int64{"a/b": 3, "large": 3 << 20} {
			if info, err := s.Stat(t.Context(), name); err != nil || info.Size != size {
				t.Errorf("stat %s: %+v, %v", name, info, err)
			}
		}
	}
	if err := errors.Join(one.Delete(t.Context(), "a/b")); err != nil {
		t.Fatal(err)
	}
	names := 0
	for info, err := range two.List(t.Context(), "") {
		if names++; err != nil || info.Name != "large" {
			t.Errorf("list: %+v, %v", info, err)
		}
	}
	if names != 1 {
		t.Errorf("%d names", names)
	}
}

// TestRealCrash checks that killed processes leave only complete batches.
func TestRealCrash(t *testing.T) {
	s := server(t)
	artifacttest.Crash(t, s.URL("bucket", "crash")+" "+filepath.Join(t.TempDir(), "cache"), openChild)
}
