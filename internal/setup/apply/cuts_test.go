package apply

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/internal/testkit/powercut"
)

// After a power cut, the next run undoes or completes the configuration.
func TestRealPowerCuts(t *testing.T) {
	for _, program := range []string{"caddy", "systemd"} {
		t.Run(program, func(t *testing.T) {
			powercut.Run(t, testkit.Size(40, 40, 100), powercut.Writer{
				Before: func(t *testing.T, dir string) {
					for name, text := range stock[program] {
						file := filepath.Join(dir, name)
						if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
							t.Fatal(err)
						}
					}
				},
				Write: func(t *testing.T, dir string) {
					if _, err := (&machine{t: t, root: dir}).apply(program, good); err != nil {
						t.Error(err)
					}
				},
				// Temporary files of a program that was killed, and the journal, which lists the folders
				// that it did not find.
				Ignore: regexp.MustCompile(`(^|/)\.[^/]*(\.new-|millrace-)[^/]*$|/applied/[a-z]+\.json$`),
			})
		})
	}
}
