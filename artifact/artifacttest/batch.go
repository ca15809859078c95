package artifacttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing/iotest"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

// within runs do in a batch.
func (f *fixture) within(do func(ctx context.Context) error) {
	f.Helper()
	if err := artifact.Batch(f.Context(), f.Store, do); err != nil {
		f.Fatal(err)
	}
}

// content returns the bytes of an artifact, or "" if it is absent.
func (f *fixture) content(ctx context.Context, name string, offset, length int64) string {
	f.Helper()
	r, err := f.Open(ctx, name, offset, length)
	if errors.Is(err, millrace.ErrNotFound) {
		return ""
	}
	if err != nil {
		f.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		f.Fatal(err)
	}
	return string(b)
}

// listed returns the names that List yields.
func (f *fixture) listed(ctx context.Context, prefix string) (names []string) {
	f.Helper()
	for info, err := range f.List(ctx, prefix) {
		if err != nil {
			f.Fatal(err)
		}
		names = append(names, info.Name)
	}
	return names
}

// batch checks that calls inside a batch see the changes of the batch, and that all calls see them
// after the batch.
func (f *fixture) batch() {
	f.put("old", "old")
	f.put("gone", "gone")
	large := strings.Repeat("0123456789abcde\n", 400_000)
	f.within(func(ctx context.Context) error {
		put := func(name, content string) {
			if err := f.Put(ctx, name, strings.NewReader(content)); err != nil {
				f.Error(err)
			}
		}
		put("old", "other")
		put("a/new", "0123456789")
		put("a/new", "other")
		put("brief", "brief")
		put("large", large)
		if err := errors.Join(f.Delete(ctx, "gone"), f.Delete(ctx, "brief"), f.Delete(ctx, "absent"), artifact.Touch(ctx, f, "a/new"), artifact.Touch(ctx, f, "old")); err != nil {
			f.Error(err)
		}
		put("gone", "again")
		if err := artifact.Touch(ctx, f, "brief"); !errors.Is(err, millrace.ErrNotFound) {
			f.Errorf("touch of a deleted artifact: %v", err)
		}
		cause := errors.New("cause")
		if err := f.Put(ctx, "failed", iotest.ErrReader(cause)); !errors.Is(err, cause) {
			f.Errorf("put: %v", err)
		}
		for name, want := range map[string]string{"old": "old", "gone": "again", "a/new": "0123456789", "brief": "", "failed": "", "large": large} {
			if got := f.content(ctx, name, 0, -1); got != want {
				f.Errorf("%s has %d bytes in the batch, want %d", name, len(got), len(want))
			}
		}
		if got := f.content(ctx, "a/new", 2, 3); got != "234" {
			f.Errorf("a range in the batch has %q", got)
		}
		if info, err := f.Stat(ctx, "a/new"); err != nil || info.Size != 10 || info.Name != "a/new" || info.Modified.IsZero() {
			f.Errorf("stat in the batch: %+v, %v", info, err)
		}
		if _, err := f.Stat(ctx, "brief"); !errors.Is(err, millrace.ErrNotFound) {
			f.Errorf("stat in the batch: %v", err)
		}
		if got := f.listed(ctx, ""); !slices.Equal(got, []string{"a/new", "gone", "large", "old"}) {
			f.Errorf("list in the batch: %v", got)
		}
		// An inner batch is part of the outer batch.
		return artifact.Batch(ctx, f.Store, func(ctx context.Context) error {
			put("b", "b")
			if got := f.content(ctx, "a/new", 0, 1); got != "0" {
				f.Errorf("in the inner batch: %q", got)
			}
			return nil
		})
	})
	for name, content := range map[string]string{"old": "old", "gone": "again", "a/new": "0123456789", "large": large, "b": "b"} {
		f.want(name, content)
	}
	f.wantList("", "a/new", "b", "gone", "large", "old")
	// Make many changes, with more bytes than a store may buffer.
	f.within(func(ctx context.Context) error {
		for i := range 1200 {
			if err := f.Put(ctx, fmt.Sprintf("many/%04d", i), strings.NewReader(strings.Repeat(fmt.Sprint(i), 2500))); err != nil {
				return err
			}
		}
		return nil
	})
	f.within(func(ctx context.Context) error {
		for i := range 1199 {
			if err := f.Delete(ctx, fmt.Sprintf("many/%04d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	f.wantList("many/", "many/1199")
	f.want("many/1199", strings.Repeat("1199", 2500))
	cause := errors.New("cause")
	if err := artifact.Batch(f.Context(), f.Store, func(context.Context) error { return cause }); !errors.Is(err, cause) {
		f.Errorf("batch: %v", err)
	}
}
