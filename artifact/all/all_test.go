package all

import (
	"path/filepath"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store/memory"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestOpen checks that a name without a scheme is a folder, and that no store is opened for an
// invalid or unreachable URL.
func TestOpen(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for name, code := range map[string]string{
		filepath.Join(t.TempDir(), "files"):       "",
		filepath.Join(t.TempDir(), "absent", "a"): "no-folder",
		"gs://bucket":                             "store-scheme",
		"s3://bucket?endpoint=ftp://x":            "bucket-url",
		"s3://bucket?endpoint=http://127.0.0.1:1": "bucket-down",
	} {
		s, err := Open(t.Context(), name, filepath.Join(t.TempDir(), "cache"), memory.New(nil).State(), nil)
		if got := millrace.ErrorCode(err); got != code || (s == nil) != (code != "") {
			t.Errorf("%s: %v, want %q", name, err, code)
		}
		if s != nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
