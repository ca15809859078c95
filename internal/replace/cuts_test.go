package replace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/internal/testkit/powercut"
)

func TestRealPowerCuts(t *testing.T) {
	for name, write := range map[string]func(dir string) error{
		"new": func(dir string) error {
			if err := New(filepath.Join(dir, "key"), make([]byte, 3*4096), 0o600); !errors.Is(err, fs.ErrExist) {
				return err
			}
			return nil
		},
		"batch": func(dir string) error { return batch(dir, batchBytes/2) }, // two full batches
		"many":  func(dir string) error { return batch(dir, 1) },            // one sync of the file system
	} {
		t.Run(name, func(t *testing.T) {
			powercut.Run(t, testkit.Size(40, 40, 100), powercut.Writer{
				Write: func(t *testing.T, dir string) {
					if err := write(dir); err != nil {
						t.Error(err)
					}
				},
				Ignore: regexp.MustCompile(`\.new-|tmp-`), // temporary files of a program that was killed
			})
		})
	}
}

// batch writes files in batches, and a last one that counts them.
func batch(dir string, size int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	b, err := NewBatch(root, "tmp-")
	if err != nil {
		return err
	}
	put := func(text string) (string, error) {
		f, temp, err := b.Create()
		if err != nil {
			return "", err
		}
		_, err = f.WriteString(text)
		return temp, errors.Join(err, f.Close())
	}
	for i := range 2*fewFiles + 1 {
		temp, err := put(fmt.Sprint("file ", i))
		if err == nil && b.Add(temp, fmt.Sprintf("%d/file", i), size) {
			err = b.Rename()
		}
		if err != nil {
			return err
		}
	}
	temp, err := put("complete")
	return errors.Join(err, b.Rename(), b.Commit(temp, "record"))
}
