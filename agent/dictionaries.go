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

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/internal/dcz"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// dictionaries stores the dictionaries of all sites: their indexes in the store, and their
// content in a folder, which the first dictionary creates. Those that were not used for the
// longest time are deleted first.
type dictionaries struct {
	state  store.State
	folder string
	max    int64 // bytes in the folder; if zero, 512 MiB
}

// index returns the stored index of an origin.
func (d dictionaries) index(origin string) state.JSON[fetch.DictionaryIndex] {
	return state.JSON[fetch.DictionaryIndex]{State: d.state, Namespace: origin, Key: "dictionaries"}
}

// Index implements [fetch.Dictionaries].
func (d dictionaries) Index(ctx context.Context, origin string) (fetch.DictionaryIndex, error) {
	return d.index(origin).Load(ctx)
}

// Update implements [fetch.Dictionaries]. It deletes the content that the index no longer has.
func (d dictionaries) Update(ctx context.Context, origin string, change func(*fetch.DictionaryIndex)) error {
	var gone []fetch.Dictionary
	err := d.index(origin).Update(ctx, func(ix *fetch.DictionaryIndex) error {
		gone = slices.Clone(ix.Held)
		change(ix)
		gone = slices.DeleteFunc(gone, func(g fetch.Dictionary) bool {
			return slices.ContainsFunc(ix.Held, func(h fetch.Dictionary) bool { return h.Hash == g.Hash })
		})
		return nil
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	files, err := dir.Open(d.folder)
	if err != nil {
		return err
	}
	for _, g := range gone {
		id, _ := dcz.ParseField(g.Hash)
		err = cmp.Or(err, files.Delete(ctx, fileOf(origin, id)))
	}
	return cmp.Or(err, files.Close())
}

// fileOf returns the name of the file of a dictionary.
func fileOf(origin string, id dcz.ID) string {
	site := sha256.Sum256([]byte(origin))
	return fmt.Sprintf("%x-%x", site[:8], id)
}

// Read implements [fetch.Dictionaries].
func (d dictionaries) Read(ctx context.Context, origin string, id dcz.ID) (content []byte, err error) {
	files, err := dir.Open(d.folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	if err := artifact.Touch(ctx, files, fileOf(origin, id)); err != nil {
		return nil, err
	}
	r, err := files.Open(ctx, fileOf(origin, id), 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if content, err = io.ReadAll(r); err == nil && dcz.Sum(content) != id {
		err = fmt.Errorf("dictionary %x: damaged file: %w", id[:8], millrace.ErrNotFound)
	}
	return content, err
}

// Write implements [fetch.Dictionaries].
func (d dictionaries) Write(ctx context.Context, origin string, id dcz.ID, content []byte) (err error) {
	files, err := dir.Open(d.folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	if err := files.Put(ctx, fileOf(origin, id), bytes.NewReader(content)); err != nil {
		return err
	}
	var all []artifact.Info
	size := -cmp.Or(d.max, 512<<20)
	for f, err := range files.List(ctx, "") {
		if err != nil {
			return err
		}
		all, size = append(all, f), size+f.Size
	}
	slices.SortFunc(all, func(a, b artifact.Info) int { return a.Modified.Compare(b.Modified) })
	for i := 0; size > 0; i++ {
		if err := files.Delete(ctx, all[i].Name); err != nil {
			return err
		}
		size -= all[i].Size
	}
	return nil
}
