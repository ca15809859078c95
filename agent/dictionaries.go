package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// dictionaries stores the dictionaries of all sites. Their indexes are in the store. Their content
// is in a folder, which is created when first used. If the folder is larger than max, the least
// recently used dictionaries are deleted.
type dictionaries struct {
	state  store.State
	folder string
	max    int64 // maximum size of the folder in bytes; if zero, 512 MiB
}

func (d dictionaries) index(origin string) state.JSON[fetch.DictionaryIndex] {
	return state.JSON[fetch.DictionaryIndex]{State: d.state, Namespace: origin, Key: "dictionaries"}
}

// Index implements [fetch.Dictionaries].
func (d dictionaries) Index(ctx context.Context, origin string) (fetch.DictionaryIndex, error) {
	return d.index(origin).Load(ctx)
}

// Update implements [fetch.Dictionaries].
func (d dictionaries) Update(ctx context.Context, origin string, change func(*fetch.DictionaryIndex)) error {
	return d.index(origin).Update(ctx, func(ix *fetch.DictionaryIndex) error {
		change(ix)
		return nil
	})
}

// fileOf returns the file name of a dictionary.
func fileOf(origin, match string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(origin+match)))
}

// Read implements [fetch.Dictionaries].
func (d dictionaries) Read(ctx context.Context, origin, match string) (content []byte, err error) {
	files, err := dir.Open(d.folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	if err := artifact.Touch(ctx, files, fileOf(origin, match)); err != nil {
		return nil, err
	}
	r, err := files.Open(ctx, fileOf(origin, match), 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Write implements [fetch.Dictionaries].
func (d dictionaries) Write(ctx context.Context, origin, match string, content []byte) (err error) {
	files, err := dir.Open(d.folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	if err := files.Delete(ctx, fileOf(origin, match)); err != nil {
		return err
	}
	if err := files.Put(ctx, fileOf(origin, match), bytes.NewReader(content)); err != nil {
		return err
	}
	var all []artifact.Info
	over := -cmp.Or(d.max, 512<<20)
	for f, err := range files.List(ctx, "") {
		if err != nil {
			return err
		}
		all, over = append(all, f), over+f.Size
	}
	slices.SortFunc(all, func(a, b artifact.Info) int { return a.Modified.Compare(b.Modified) })
	for i := 0; over > 0; i++ {
		if err := files.Delete(ctx, all[i].Name); err != nil {
			return err
		}
		over -= all[i].Size
	}
	return nil
}
