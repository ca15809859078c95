package dir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/internal/testkit/powercut"
)

// TestRealPowerCuts checks that after a power cut, every artifact whose Put or Batch has
// returned exists, and every artifact that exists is complete.
func TestRealPowerCuts(t *testing.T) {
	powercut.Run(t, testkit.Size(40, 40, 100), powercut.Writer{
		Write: func(t *testing.T, dir string) {
			s, err := Open(filepath.Join(dir, "artifacts"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			put := func(ctx context.Context, name string, size int) error {
				return s.Put(ctx, name, strings.NewReader(strings.Repeat("data", size)))
			}
			err = s.Batch(t.Context(), func(ctx context.Context) (err error) {
				for i := range 5 {
					err = errors.Join(err, put(ctx, fmt.Sprintf("chunks/%d/a", i%2*i), i*3000))
				}
				return err
			})
			if err := errors.Join(err, put(t.Context(), "chunks/0/b", 2000)); err != nil {
				t.Error(err)
			}
		},
		Ignore: regexp.MustCompile("/" + unfinished + "/"),
	})
}
