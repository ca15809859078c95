package dir

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/internal/testkit/powercut"
)

// TestRealPowerCuts checks that after a power cut, every artifact whose Put has returned exists,
// and every artifact that exists is complete.
func TestRealPowerCuts(t *testing.T) {
	powercut.Run(t, testkit.Size(40, 40, 100), powercut.Writer{
		Write: func(t *testing.T, dir string) {
			s, err := Open(filepath.Join(dir, "artifacts"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for i := range 5 {
				if err := s.Put(t.Context(), fmt.Sprintf("chunks/%d/a", i%2*i), strings.NewReader(strings.Repeat("data", i*3000))); err != nil {
					t.Error(err)
				}
			}
		},
		Ignore: regexp.MustCompile("/" + unfinished + "/"),
	})
}
