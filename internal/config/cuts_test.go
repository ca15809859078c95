package config

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/internal/testkit/powercut"
)

// After a power cut, the configuration is the old or the new one.
func TestRealPowerCuts(t *testing.T) {
	powercut.Run(t, testkit.Size(40, 40, 100), powercut.Writer{
		Before: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "millrace.yaml"), "listen: 127.0.0.1:0\n") },
		Write: func(t *testing.T, dir string) {
			c := readConfig(t, filepath.Join(dir, "millrace.yaml"), nil)
			if err := c.Save(Changes{Lists: map[string][]string{"keep": {".b"}}}, func() error { return nil }); err != nil {
				t.Error(err)
			}
		},
		Ignore: regexp.MustCompile(`\.new-`), // temporary files of a program that was killed
	})
}
