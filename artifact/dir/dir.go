// Package dir implements [artifact.Store] in a folder.
//
// An artifact is a file that only its owner can access. Each segment of its name except the last is
// a folder, whose name has the suffix "_": the artifact a/b is the file a_/b. The artifacts a and
// a/b do not collide, because no segment of an artifact's name ends in "_". Folders are never
// removed. The file system must support hard links.
//
// An upload is a file in the folder _unfinished, whose name no artifact can have. Put writes and
// syncs the upload, and then links it to the name of the artifact. The link fails if the name
// exists. In a batch, several files are synced at the same time, while the caller continues. [Open]
// removes uploads that a killed process has left behind.
//
// If the folder is removed or replaced while a store is open, Put and Stat create or open the
// folder at the same path.
package dir

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/internal/replace"
)

const (
	unfinished = "_unfinished"
	// Open removes an upload if this time has passed since the last write to it.
	abandoned = 24 * time.Hour
)

// Store is an [artifact.Store].
type Store struct {
	path    string // absolute path of the folder
	root    atomic.Pointer[os.Root]
	folders sync.Map // set of folders that this process has made durable
}

var _ artifact.Batcher = (*Store)(nil)

// Open opens the store in a folder. It creates the folder, but not its parent folder, and removes
// uploads that have not been written for 24 hours. Several processes may open the same folder.
//
// If the parent folder does not exist, Open returns ErrInvalid with the code no-folder. If the
// folder is not writable, it returns ErrForbidden. For any other error of the file system, such as
// a full disk, it returns ErrUnavailable. The methods of a Store also return ErrForbidden and
// ErrUnavailable.
func Open(folder string) (*Store, error) {
	s, err := open(folder)
	what := "open artifacts in " + folder
	if errors.Is(err, fs.ErrNotExist) {
		return nil, millrace.Coded("no-folder", fmt.Errorf("%s: %w: %w", what, millrace.ErrInvalid, err))
	}
	return s, explain(what, err)
}

func open(folder string) (*Store, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path}
	if err := s.open(); err != nil {
		return nil, err
	}
	if err := s.clean(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open opens the folder, and creates it if it is absent.
func (s *Store) open() error {
	err := os.Mkdir(s.path, 0o700)
	if err == nil {
		err = replace.SyncFolder(os.Open(filepath.Dir(s.path)))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(s.path)
	if err != nil {
		return err
	}
	s.folders.Clear()
	s.root.Store(root) // other goroutines may use the old root, which is closed by the garbage collector
	return nil
}

// renew opens the folder again if it was removed or replaced.
func (s *Store) renew() error {
	was, err := s.root.Load().Stat(".")
	if err != nil {
		return err
	}
	if is, err := os.Stat(s.path); err == nil && os.SameFile(was, is) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.open()
}

// clean removes abandoned uploads.
func (s *Store) clean() error {
	if err := s.makeFolder(unfinished); err != nil {
		return err
	}
	uploads, err := s.read(unfinished)
	if err != nil {
		return err
	}
	for _, u := range uploads {
		name := path.Join(unfinished, u.Name())
		info, err := s.root.Load().Lstat(name)
		if err == nil && time.Since(info.ModTime()) > abandoned {
			err = s.root.Load().Remove(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close closes the store. Readers of artifacts stay open.
func (s *Store) Close() error { return s.root.Load().Close() }

// fileOf returns the path of the file of an artifact.
func fileOf(name string) string { return strings.ReplaceAll(name, "/", "_/") }

// makeFolder creates a folder and its parents, and makes them durable. It also syncs existing
// folders, because the process that created them may have ended before it synced them.
func (s *Store) makeFolder(folder string) error {
	if folder == "." {
		return nil
	}
	if _, ok := s.folders.Load(folder); ok {
		if _, err := s.root.Load().Lstat(folder); err == nil {
			return nil
		}
	}
	if err := s.makeFolder(path.Dir(folder)); err != nil {
		return err
	}
	if err := s.root.Load().Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := replace.SyncFolder(s.root.Load().Open(path.Dir(folder))); err != nil {
		return err
	}
	s.folders.Store(folder, true)
	return nil
}

// Put implements [artifact.Store].
func (s *Store) Put(ctx context.Context, name string, r io.Reader) error {
	if err := cmp.Or(artifact.CheckName(name), ctx.Err()); err != nil {
		return err
	}
	b := s.batchOf(ctx)
	if b == nil {
		return s.Batch(ctx, func(ctx context.Context) error { return s.Put(ctx, name, r) })
	}
	what, file := "put artifact "+name, fileOf(name)
	folder := path.Dir(file)
	done := b.hold(name)
	err := s.renew()
	if err == nil {
		err = s.makeFolder(folder)
	}
	if err == nil {
		var f *os.File
		if f, err = s.touch(file); err == nil {
			done()
			b.changed(folder)
			b.later(func() error { return explain(what, cmp.Or(f.Sync(), f.Close())) })
			return nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		in := &input{ctx: ctx, r: r}
		var f *os.File
		if f, err = s.write(in); err == nil {
			b.changed(folder)
			b.later(func() error {
				defer done()
				return explain(what, s.link(f, file))
			})
			return nil
		}
		if in.err != nil {
			done()
			return fmt.Errorf("%s: %w", what, in.err)
		}
	}
	done()
	return explain(what, err)
}

// touch sets the modification time of a file to the current time. The caller syncs and closes the
// file.
func (s *Store) touch(file string) (*os.File, error) {
	f, err := s.root.Load().OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if err := s.root.Load().Chtimes(file, now, now); err != nil {
		return nil, cmp.Or(err, f.Close())
	}
	return f, nil
}

// write writes an upload. The caller calls link.
func (s *Store) write(in io.Reader) (*os.File, error) {
	if err := s.makeFolder(unfinished); err != nil {
		return nil, err
	}
	temp := path.Join(unfinished, rand.Text())
	f, err := s.root.Load().OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(f, in); err != nil {
		_, _ = f.Close(), s.root.Load().Remove(temp) // if this fails, Open removes the file later
		return nil, err
	}
	return f, nil
}

// link syncs and closes an upload, and gives it the name of the artifact. If a file with that name
// was created meanwhile, link touches it instead.
func (s *Store) link(f *os.File, file string) error {
	temp := path.Join(unfinished, path.Base(f.Name()))
	defer s.root.Load().Remove(temp) //nolint:errcheck // if this fails, Open removes the file later
	if err := cmp.Or(f.Sync(), f.Close()); err != nil {
		return err
	}
	for {
		if err := s.root.Load().Link(temp, file); !errors.Is(err, fs.ErrExist) {
			return err
		}
		f, err := s.touch(file)
		if err == nil {
			return cmp.Or(f.Sync(), f.Close())
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

// input is a reader that fails when its context ends. It stores a read error, to distinguish it
// from a write error.
type input struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (in *input) Read(p []byte) (n int, err error) {
	if in.err = in.ctx.Err(); in.err != nil {
		return 0, in.err
	}
	n, err = in.r.Read(p)
	if err != io.EOF { //nolint:errorlint // a wrapped io.EOF is an error
		in.err = err
	}
	return n, err
}

// Open implements [artifact.Store]. The reader continues after a Delete.
func (s *Store) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := cmp.Or(artifact.CheckName(name), artifact.CheckRange(offset, length), ctx.Err()); err != nil {
		return nil, err
	}
	s.batchOf(ctx).wait(name)
	f, err := s.root.Load().Open(fileOf(name))
	if err != nil {
		return nil, lookupError("open artifact "+name, err)
	}
	if length < 0 {
		length = math.MaxInt64
	}
	return &section{io.NewSectionReader(f, offset, length), f}, nil
}

// section is a range of a file.
type section struct {
	io.Reader
	io.Closer
}

// lookupError returns ErrNotFound if err says that a file is absent, else the explained error.
func lookupError(what string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", what, millrace.ErrNotFound)
	}
	return explain(what, err)
}

// Stat implements [artifact.Store].
func (s *Store) Stat(ctx context.Context, name string) (artifact.Info, error) {
	if err := cmp.Or(artifact.CheckName(name), ctx.Err()); err != nil {
		return artifact.Info{}, err
	}
	s.batchOf(ctx).wait(name)
	err := s.renew()
	var info fs.FileInfo
	if err == nil {
		info, err = s.root.Load().Lstat(fileOf(name))
	}
	if err != nil {
		return artifact.Info{}, lookupError("stat artifact "+name, err)
	}
	return artifact.Info{Name: name, Size: info.Size(), Modified: info.ModTime().UTC()}, nil
}

// List implements [artifact.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[artifact.Info, error] {
	return func(yield func(artifact.Info, error) bool) {
		s.batchOf(ctx).waitAll()
		s.list(ctx, "", prefix, yield)
	}
}

// list yields the artifacts below base, which is "" or ends in "/". It returns false if the listing
// must end.
func (s *Store) list(ctx context.Context, base, prefix string, yield func(artifact.Info, error) bool) bool {
	entries, err := s.read(path.Clean(fileOf(base)))
	if err := cmp.Or(ctx.Err(), explain("list artifacts", err)); err != nil {
		yield(artifact.Info{}, err)
		return false
	}
	var names []string // names of folders end in "/"
	for _, e := range entries {
		name := base + e.Name()
		if folder, ok := strings.CutSuffix(name, "_"); ok && e.IsDir() {
			name = folder + "/"
		} else if !e.Type().IsRegular() || artifact.CheckName(name) != nil {
			continue
		}
		if strings.HasPrefix(name, prefix) || strings.HasSuffix(name, "/") && strings.HasPrefix(prefix, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, "/") {
			if !s.list(ctx, name, prefix, yield) {
				return false
			}
			continue
		}
		info, err := s.Stat(ctx, name)
		if errors.Is(err, millrace.ErrNotFound) {
			continue
		}
		if !yield(info, err) || err != nil {
			return false
		}
	}
	return true
}

// read returns the entries of a folder.
func (s *Store) read(folder string) ([]fs.DirEntry, error) {
	f, err := s.root.Load().Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// Delete implements [artifact.Store].
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := cmp.Or(artifact.CheckName(name), ctx.Err()); err != nil {
		return err
	}
	file := fileOf(name)
	b := s.batchOf(ctx)
	if b == nil {
		return s.Batch(ctx, func(ctx context.Context) error { return s.Delete(ctx, name) })
	}
	done := b.hold(name)
	b.later(func() error {
		defer done()
		err := s.root.Load().Remove(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		b.changed(path.Dir(file))
		return explain("delete artifact "+name, err)
	})
	return nil
}
