package scp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
)

// Limits that allow sites of any size to be checked.
const (
	maxExamined = 32 << 20  // maximum size in bytes of a snapshot that is preferred because its section has deltas
	maxDecoded  = 128 << 20 // maximum decoded size of a file in bytes
	maxNotes    = 50        // maximum number of findings per rule and file
	maxPublic   = 1000      // maximum number of pages to sample from
)

// seenFile is a collection file and the response to its GET request.
type seenFile struct {
	ref    *reference
	header http.Header // request header
	resp   *check.Response
	err    error  // error of the request
	named  string // coding according to the suffix of its URL
	suffix bool   // whether the specification defines the suffix of its URL
	*content
}

// ok reports whether the response is a 200 with a complete body.
func (f *seenFile) ok() bool {
	return f.err == nil && f.resp.Status == http.StatusOK && f.resp.CutErr == nil
}

// content is the result of examining a file, which all rules share. If two codings of a collection
// decode to the same bytes, the second gets a copy of the result.
type content struct {
	coding   string // coding according to the first bytes of the file
	sum      [sha256.Size]byte
	notes    []ruleBreak
	about    map[string]bool // rules that apply to the file
	complete bool            // whether the file was read to its end
	limited  error           // why reading stopped, if the file is not the cause
	lines    int             // number of lines after the metadata line
	meta     Metadata        // absent and invalid values are zero
	checksum string          // CheckResult.Checksum, or "" if not verified

	modified map[uint64]int64
	public   []string // URLs of the first pages, from which a sample is taken
}

// ruleBreak is one violation of a rule.
type ruleBreak struct{ rule, got, want string }

func (c *content) note(rule, got, want string) {
	c.about[rule] = true
	n := 0
	for i := range c.notes {
		if c.notes[i].rule == rule {
			n++
		}
	}
	if n < maxNotes {
		c.notes = append(c.notes, ruleBreak{rule, got, want})
	}
}

func (s *siteContext) fetch(ctx context.Context, r *reference) (*seenFile, error) {
	f := &seenFile{ref: r, header: http.Header{"Accept-Encoding": {"identity"}}}
	if f.named, f.suffix = suffixOf(r.url); f.named != "" {
		f.header.Set("Accept-Encoding", f.named)
	}
	f.resp, f.err = s.Do(ctx, http.MethodGet, r.url, f.header)
	if ctx.Err() != nil || errors.Is(f.err, check.ErrBusy) {
		return nil, f.err
	}
	return f, nil
}

// study examines the readable files, in the order of their generation times.
func (s *siteContext) study(ctx context.Context) {
	var order []*seenFile
	for _, f := range s.files {
		if f.ok() {
			order = append(order, f)
		}
	}
	slices.SortStableFunc(order, func(a, b *seenFile) int { return a.ref.generated.Compare(b.ref.generated) })
	for i, f := range order {
		b := &examination{siteContext: s, content: &content{about: map[string]bool{}, modified: map[uint64]int64{}}, file: f, before: order[:i]}
		b.run(ctx)
		f.content = b.content
		for _, g := range order[:i] {
			if g.ref.group() == f.ref.group() && g.sum == f.sum && g.coding != f.coding {
				same := *g.content // report the notes only once
				same.coding, same.notes, same.complete, same.limited = f.coding, nil, f.complete, f.limited
				for _, n := range b.notes {
					if n.rule == "format/compression" {
						same.notes = append(same.notes, n)
					}
				}
				f.content = &same
			}
		}
	}
}

// examination applies the rules to the bytes of one file.
type examination struct {
	*siteContext
	*content
	file   *seenFile
	before []*seenFile // files examined earlier
}

// notFetched returns the error of a fetch that says nothing about the file, such as a limit of the
// checker. If the file was fetched, or is the cause of the error, it returns nil.
func (f *seenFile) notFetched() error {
	if err := f.err; check.IsInconclusive(err) {
		return err
	}
	if f.err == nil && check.IsInconclusive(f.resp.CutErr) {
		return f.resp.CutErr
	}
	return nil
}

func (b *examination) run(ctx context.Context) {
	coded := b.file.resp.Coded
	b.coding = codingOf(coded[:min(4, len(coded))])
	b.about["format/compression"] = b.file.suffix
	if b.coding != b.file.named && b.file.suffix && !strings.EqualFold(b.file.resp.Header.Get("Content-Encoding"), b.coding) {
		b.note("format/compression", "file is "+codingName(b.coding), codingName(b.file.named)+", according to its suffix")
		if b.coding == "" {
			return // the format is unknown
		}
	}
	limits := *b.limits
	limits.MaxBytes, limits.MaxFile = min(limits.MaxBytes, maxDecoded), int64(len(coded))
	known, err := Open(bytes.NewReader(coded), int64(len(coded)), &limits)
	if err != nil {
		known = nil
	}
	all, cut := sha256.New(), sha256.New()
	p := &parser{limits: &limits}
	l := &lines{ctx: ctx, limits: &limits}
	b.ended(l, l.read(bytes.NewReader(coded), int64(len(coded)), b.coding, func(line []byte) error {
		all.Write(line)
		if l.number == 1 {
			b.metadata(p, line)
			if known != nil {
				cut.Write(line[:known.sum.from])
				cut.Write(line[known.sum.to:])
			}
			return nil
		}
		cut.Write(line)
		b.lines++
		b.line(p, l.number, line)
		return nil
	}))
	all.Sum(b.sum[:0])
	b.about["format/json-lines"] = true
	if b.complete {
		b.about["limits/ratio"], b.about["limits/page"] = b.coding != "", true
	}
	if known == nil || !b.complete {
		return
	}
	switch {
	case known.meta.Checksum == "":
		b.checksum = "none"
	case known.meta.Checksum == hashPrefix+hex.EncodeToString(cut.Sum(nil)):
		b.checksum = "cut"
	default:
		b.checksum, _ = known.otherChecksum(ctx)
	}
}

// ended records why reading ended.
func (b *examination) ended(l *lines, err error) {
	_, broken := errors.AsType[*millrace.FormatError](err)
	switch {
	case err == nil:
		b.complete = true
	case errors.Is(err, errLine):
		b.note("limits/page", fmt.Sprintf("line %d has more than %d bytes", l.number+1, b.limits.MaxLine), "at most 100 MB")
	case l.bytes > l.most && l.ratio:
		b.note("limits/ratio", fmt.Sprintf("%d bytes decompress to more than %d", len(b.file.resp.Coded), l.most), "at most 100 times as many")
	case l.bytes > l.most:
		b.limited = fmt.Errorf("%w: %d bytes per file", check.ErrLimit, l.most)
	case broken:
		b.note("format/compression", err.Error(), "a file that decompresses completely")
	default:
		b.limited = err
	}
}

func codingName(coding string) string {
	if coding == "" {
		return "neither gzip nor zstd"
	}
	return coding
}

// onContent returns a check that reports the violations of a rule in all files.
func onContent(rule string) siteCheck {
	return func(_ context.Context, s *siteContext, fail check.Fail) error {
		some := false
		var limited error
		for _, f := range s.files {
			if f.content == nil {
				limited = errors.Join(limited, f.notFetched())
				continue
			}
			some = some || f.about[rule]
			limited = errors.Join(limited, f.limited)
			for _, n := range f.notes {
				if n.rule == rule {
					fail(f.ref.url, n.got, n.want)
				}
			}
		}
		if some || limited != nil {
			return limited
		}
		return check.ErrNotApplicable
	}
}
