package markdown

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/tree"
)

// index contains the addresses of all pages, so that files need not be read again.
type index struct {
	rules string  // start of every version: hash of all inputs except the file
	setup uint64  // hash of the configuration
	known []known // sorted by key
	// lost maps a file to the other file that has the same URL.
	lost map[string]string
	// names maps the hash of a page's name to an index in folders. It is used for links that
	// consist only of a name.
	names   map[uint64]uint32
	folders []string
}

// known contains a hash of a file's state, and a hash of the URL that the file had in this state.
type known struct{ key, url uint64 }

func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = io.WriteString(h, p+"\x00") // never fails
	}
	return h.Sum64()
}

// starts returns the folders to walk: the roots inside the folder sub, or sub itself if it is
// inside a root.
func starts(roots []string, sub string) []string {
	var out []string
	for _, r := range roots {
		switch {
		case within(sub, r):
			out = append(out, r)
		case within(r, sub):
			out = append(out, sub)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	all := slices.Clone(out)
	out = slices.DeleteFunc(out, func(a string) bool {
		return slices.ContainsFunc(all, func(b string) bool { return a != b && within(b, a) })
	})
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(escapePath(a)+"/", escapePath(b)+"/") })
	return out
}

// walk is one walk over the folders of a site.
type walk struct {
	entries iter.Seq[tree.Entry]
	failed  error
}

func (s *snapshot) walk(ctx context.Context) *walk {
	w := &walk{}
	w.entries = func(yield func(tree.Entry) bool) {
		for _, start := range s.starts {
			t := s.walker()
			for e := range t.Walk(ctx, start) {
				if !yield(e) {
					return
				}
			}
			w.failed = cmp.Or(w.failed, t.Failed)
		}
	}
	return w
}

// folders calls add with every folder of a walk, until add returns false.
func (s *snapshot) folders(ctx context.Context, start string, add func(string) bool) {
	more, t := true, s.walker()
	t.Dir = func(name string) { more = more && add(name) }
	for range t.Walk(ctx, start) {
		if !more {
			return
		}
	}
}

func (s *snapshot) walker() *tree.Walker {
	return &tree.Walker{Root: s.root, Max: s.max, Name: func(name string, folder bool, list []fs.DirEntry) (string, bool, error) {
		use, err := s.entry(name, folder, func(n string) bool {
			return slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == n })
		})
		return tree.Escape(path.Base(name)), use, err
	}}
}

// learn determines the addresses of all pages. It does not read files that have not changed since
// the snapshot old.
func (s *snapshot) learn(ctx context.Context, old *snapshot) error {
	x := &index{lost: map[string]string{}}
	x.setup = hash(fmt.Sprint(format, extract.Version, s.kind, s.base, s.language, s.drafts, s.future, s.expired, s.authors, s.values, s.macros, s.rules.Fingerprint()), fmt.Sprintf("%+v", s.convention))
	s.index = &index{setup: x.setup}
	if old != nil && old.index.setup == x.setup {
		s.index.known = old.index.known
	}
	if s.shortNames {
		x.names = map[uint64]uint32{}
	}
	var irregular uint64 // hash of all pages whose addresses are not determined by their names
	w := s.walk(ctx)
	for e := range tree.Pages(w.entries) {
		k, err := s.address(e)
		if err != nil {
			continue // a walk reports this file
		}
		x.known = append(x.known, k)
		if sp, err := s.spot(e.File, &head{any: true}); err != nil || hash(sp.url) != k.url {
			irregular += hash(e.File, strconv.FormatUint(k.url, 36))
		}
		if s.shortNames {
			x.name(e.File)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	slices.SortFunc(x.known, func(a, b known) int { return cmp.Compare(a.url, b.url) })
	twice := map[uint64]string{}
	for i := 1; i < len(x.known); i++ {
		if x.known[i].url == x.known[i-1].url {
			twice[x.known[i].url] = ""
		}
	}
	slices.SortFunc(x.known, func(a, b known) int { return cmp.Compare(a.key, b.key) })
	s.index.known = x.known
	if len(twice) > 0 {
		s.assignURL(ctx, x, twice)
	}
	for loser, winner := range x.lost {
		irregular += hash(loser, winner, "lost")
	}
	x.rules = strconv.FormatUint(hash(strconv.FormatUint(x.setup, 36), strconv.FormatUint(irregular, 36)), 36)
	s.index = x
	return ctx.Err()
}

// assignURL decides which of several files gets the URL that they share. The first file in the
// order of the names gets the URL, except that an index precedes a README.
func (s *snapshot) assignURL(ctx context.Context, x *index, twice map[uint64]string) {
	weak := func(file string) bool {
		sp, err := s.spot(file, &head{any: true})
		return err == nil && sp.weak
	}
	both := func(use func(file string, url uint64)) {
		for e := range tree.Pages(s.walk(ctx).entries) {
			if k, err := s.address(e); err == nil {
				if _, ok := twice[k.url]; ok {
					use(e.File, k.url)
				}
			}
		}
	}
	both(func(file string, url uint64) {
		if winner := twice[url]; winner == "" || weak(winner) && !weak(file) {
			twice[url] = file
		}
	})
	both(func(file string, url uint64) {
		if twice[url] != file {
			x.lost[file] = twice[url]
		}
	})
}

// name records the folder of a page under the name that is used in links.
func (x *index) name(file string) {
	dir := path.Dir(file)
	if len(x.folders) == 0 || x.folders[len(x.folders)-1] != dir {
		x.folders = append(x.folders, dir)
	}
	stem, _, _ := strings.Cut(path.Base(file), ".")
	if stem == "index" || stem == "_index" {
		stem = path.Base(dir)
	}
	if key := hash(strings.ToLower(stem)); uint64(len(x.folders)) < 1<<32 {
		if _, ok := x.names[key]; !ok {
			x.names[key] = uint32(len(x.folders) - 1)
		}
	}
}

// find returns the folder of the page with a name.
func (x *index) find(stem string) (string, bool) {
	i, ok := x.names[hash(strings.ToLower(stem))]
	if !ok {
		return "", false
	}
	return x.folders[i], true
}

// address returns the hash of a file's URL. It reads the file if the file has changed since its URL
// was last determined.
func (s *snapshot) address(e tree.Entry) (known, error) {
	if winner := s.index.lost[e.File]; winner != "" {
		return known{}, unpublished{"same-url", "another file has the same URL: " + winner}
	}
	now := s.now()
	version := tree.Version("", e.Info, now)
	k := known{key: hash(strconv.FormatUint(s.index.setup, 36), e.File, version)}
	if version == "" {
		k.key = hash("?", e.File)
	} else if i, ok := slices.BinarySearchFunc(s.index.known, k, func(a, b known) int { return cmp.Compare(a.key, b.key) }); ok {
		return s.index.known[i], nil
	}
	h, err := s.head(e.File)
	if err != nil {
		return known{}, err
	}
	sp, timed, err := s.spotOf(e.File, &h, now)
	if err != nil {
		return known{}, err
	}
	if timed {
		k.key = hash("?", e.File) // read the file again next time
	}
	k.url = hash(sp.url)
	return k, nil
}

// spotOf returns the address of a page. timed reports whether the page may be published or hidden
// as time passes. If the page is not public, the error is an [unpublished].
func (s *snapshot) spotOf(file string, h *head, now time.Time) (sp spot, timed bool, err error) {
	if h.matter == nil {
		h.matter = matter{}
	}
	if sp, err = s.spot(file, h); err != nil {
		return sp, false, err
	}
	timed, err = s.release(h.matter, sp.date, now)
	return sp, timed, err
}

// head reads the front matter of a file.
func (s *snapshot) head(file string) (head, error) {
	if s.open != nil {
		s.open(file)
	}
	h, err := tree.Open(s.root, file)
	if err != nil {
		return head{}, err
	}
	defer h.Close()
	data := make([]byte, 4<<10)
	n, err := io.ReadFull(h, data)
	if err == nil && needsMore(data) {
		more := make([]byte, maxMatter+1)
		copy(more, data)
		var m int
		m, err = io.ReadFull(h, more[n:])
		data, n = more, n+m
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return head{}, tree.PathError(err)
	}
	return named(file)(parseHead(data[:n]))
}

// needsMore reports whether the front matter continues after data.
func needsMore(data []byte) bool {
	if text := bytes.TrimPrefix(data, []byte("\uFEFF")); len(text) == 0 || !bytes.ContainsRune([]byte("-+{"), rune(text[0])) {
		return false
	}
	h, err := parseHead(data)
	return err != nil || !h.any
}

// named returns a function that adds the name of the file to an error in its front matter.
func named(file string) func(head, error) (head, error) {
	return func(h head, err error) (head, error) {
		var fe *millrace.FormatError
		if errors.As(err, &fe) {
			fe.Position = file + ":" + fe.Position
		}
		return h, err
	}
}

// file returns the file for a URL in the stream. The file must be one that a walk would find.
func (s *snapshot) file(u string) (string, error) {
	rest, ok := strings.CutPrefix(u, "/")
	names := strings.Split(rest, "/")
	for i, n := range names {
		name, err := url.PathUnescape(n)
		if err != nil || name == "" || tree.Hidden(name) || strings.ContainsAny(name, "/\x00") || tree.Escape(name) != n {
			ok = false
			break
		}
		names[i] = name
	}
	name := strings.Join(names, "/")
	if !ok || !isMarkdown(name) {
		return "", fmt.Errorf("%w: no page has this name", millrace.ErrNotFound)
	}
	return name, s.allowed(name)
}

// allowed returns the reason why a walk would skip a name, or nil if it would not.
func (s *snapshot) allowed(name string) error {
	at := slices.IndexFunc(s.starts, func(start string) bool { return within(start, name) })
	if at < 0 {
		return fmt.Errorf("%w: not in a folder of the site", millrace.ErrNotFound)
	}
	parts := strings.Split(name, "/")
	for i := range parts {
		n := path.Join(parts[:i+1]...)
		if within(n, s.starts[at]) && s.starts[at] != "." {
			continue
		}
		use, err := s.entry(n, i < len(parts)-1, func(other string) bool {
			_, err := s.root.Stat(path.Join(path.Dir(n), other))
			return err == nil
		})
		if err != nil {
			return err
		}
		if !use {
			return fmt.Errorf("%w: not a page according to the site's convention", millrace.ErrNotFound)
		}
	}
	return nil
}

// exists reports whether a regular file has this name.
func (s *snapshot) exists(name string) bool {
	info, err := s.root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
