package bots

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
)

// RangeFile names a file with the addresses of a bot, or of each bot in a family.
type RangeFile struct {
	Name string // token, name or family of the bots
	File string // name of the file, which has a format of [ReadRanges]
}

// Identity is the result of checking a bot's name.
type Identity int

// Values of Identity.
const (
	Unknown  Identity = iota // no proof
	Verified                 // the name is genuine
	Forged                   // the name belongs to another bot
)

// Verify checks an address against those of the bot. If these are unknown, Verify returns
// Unknown. It does not allocate.
func (t *Table) Verify(b *Bot, from netip.Addr) Identity {
	if b == nil || b == Other {
		return Unknown
	}
	known := t.ranges[b.index].Load()
	switch {
	case known == nil:
		return Unknown
	case known.contain(from):
		return Verified
	}
	return Forged
}

// Located reports whether the addresses of a bot are known.
func (t *Table) Located(b *Bot) bool { return b != Other && t.ranges[b.index].Load() != nil }

// Limits of a file of addresses.
const (
	maxRangeFile = 16 << 20
	maxPrefixes  = 500_000
)

// ReadRanges parses the formats in which operators publish addresses:
//
//   - a JSON object with an array of prefixes, each with an ipv4Prefix, an ipv6Prefix or an
//     ip_prefix;
//   - one network or address per line, up to a comma (RFC 8805) or #.
//
// An error in the content wraps [millrace.ErrInvalid] or [millrace.ErrTooLarge]. An error in an
// entry names its position.
func ReadRanges(r io.Reader) ([]netip.Prefix, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxRangeFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxRangeFile {
		return nil, fmt.Errorf("more than %d bytes: %w", maxRangeFile, millrace.ErrTooLarge)
	}
	b = bytes.TrimPrefix(b, []byte("\uFEFF"))
	var out []netip.Prefix
	if trimmed := bytes.TrimSpace(b); len(trimmed) > 0 && trimmed[0] == '{' {
		out, err = jsonRanges(b)
	} else {
		out, err = lineRanges(string(b))
	}
	switch {
	case err != nil:
		return nil, err
	case len(out) == 0:
		return nil, fmt.Errorf("contains no address: %w", millrace.Coded("no-address", millrace.ErrInvalid))
	case len(out) > maxPrefixes:
		return nil, fmt.Errorf("more than %d networks: %w", maxPrefixes, millrace.ErrTooLarge)
	}
	return out, nil
}

func jsonRanges(b []byte) ([]netip.Prefix, error) {
	var doc struct {
		Prefixes []struct {
			V4 string `json:"ipv4Prefix"`
			V6 string `json:"ipv6Prefix"`
			IP string `json:"ip_prefix"` // network of either IP version, as Amazon writes it
		} `json:"prefixes"`
	}
	if err := jsonio.Unmarshal(b, nil, &doc); err != nil {
		return nil, err
	}
	var out []netip.Prefix
	for i, entry := range doc.Prefixes {
		if entry.V4 == "" && entry.V6 == "" && entry.IP == "" {
			return nil, fmt.Errorf("at /prefixes/%d: none of ipv4Prefix, ipv6Prefix and ip_prefix: %w", i, millrace.Coded("range-field", millrace.ErrInvalid))
		}
		for _, s := range []string{entry.V4, entry.V6, entry.IP} {
			if s == "" {
				continue
			}
			p, err := network(s)
			if err != nil {
				return nil, fmt.Errorf("at /prefixes/%d: %w", i, err)
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func lineRanges(text string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		line, more, _ := strings.Cut(line, ",")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		p, err := network(line)
		country, _, _ := strings.Cut(more, ",")
		if _, another := network(strings.TrimSpace(country)); another == nil {
			err = fmt.Errorf("%q is followed by another address: %w; write one per line", line, millrace.Coded("range-line", millrace.ErrInvalid))
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, p)
	}
	return out, nil
}

func network(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if a, aerr := netip.ParseAddr(s); aerr == nil && a.Zone() == "" {
		a = a.Unmap()
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case err != nil:
		return p, fmt.Errorf("%q is not a network, such as 192.0.2.0/24: %w", s, millrace.Coded("bad-network", millrace.ErrInvalid))
	case p.Bits() == 0:
		return p, fmt.Errorf("%q contains every address: %w", s, millrace.Coded("every-address", millrace.ErrInvalid))
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%q is an IPv4-mapped network; write it as an IPv4 network: %w", s, millrace.Coded("mapped-network", millrace.ErrInvalid))
	}
	return p.Masked(), nil
}

// spans are sorted, disjoint ranges of addresses.
type spans []span

type span struct{ from, to netip.Addr }

func newSpans(networks []netip.Prefix) *spans {
	all := make(spans, 0, len(networks))
	for _, p := range networks {
		all = append(all, span{p.Addr(), last(p)})
	}
	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.from.BitLen() == out[n-1].to.BitLen() && !out[n-1].to.Less(s.from) {
			if out[n-1].to.Less(s.to) {
				out[n-1].to = s.to
			}
			continue
		}
		out = append(out, s)
	}
	out = slices.Clip(out)
	return &out
}

// last returns the last address of a network.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b) // b has the length of the address
	return a
}

func (s *spans) contain(a netip.Addr) bool {
	a = a.Unmap()
	all := *s
	i := sort.Search(len(all), func(i int) bool { return a.Less(all[i].from) })
	return i > 0 && a.BitLen() == all[i-1].to.BitLen() && !all[i-1].to.Less(a)
}

// rangeFile is a file of addresses with its parsed content.
type rangeFile struct {
	RangeFile
	bots     []*Bot
	size     int64
	modified time.Time
	networks []netip.Prefix
}

// reread is the interval at which the files of addresses are checked for changes.
const reread = 10 * time.Second

// add reads a file of addresses.
func (t *Table) add(r RangeFile) error {
	f := &rangeFile{RangeFile: r}
	for _, b := range t.Named(r.Name) {
		if !b.RobotsOnly && !strings.EqualFold(string(b.Purpose), r.Name) {
			f.bots = append(f.bots, b)
		}
	}
	if f.bots == nil {
		return fmt.Errorf("addresses of %s: %w: %w", r.Name, errUnknown, millrace.ErrInvalid)
	}
	if _, err := f.read(); err != nil {
		return err
	}
	t.files = append(t.files, f)
	t.publish(f.bots)
	return nil
}

// read reads the file if it has changed.
func (f *rangeFile) read() (changed bool, err error) {
	file, err := os.Open(f.File)
	if err != nil {
		return false, fmt.Errorf("addresses of %s: %w", f.Name, err)
	}
	defer func() { _ = file.Close() }() // opened only for reading
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("addresses of %s: %w", f.Name, err)
	}
	if info.Size() == f.size && info.ModTime().Equal(f.modified) && f.networks != nil {
		return false, nil
	}
	// Set these first, so that an error in the file is logged only once.
	f.size, f.modified = info.Size(), info.ModTime()
	networks, err := ReadRanges(file)
	if err != nil {
		return false, fmt.Errorf("addresses of %s: %s: %w", f.Name, f.File, err)
	}
	f.networks = networks
	return true, nil
}

// publish applies the addresses of the files to the given bots.
func (t *Table) publish(some []*Bot) {
	for _, b := range some {
		var networks []netip.Prefix
		for _, f := range t.files {
			if slices.Contains(f.bots, b) {
				networks = append(networks, f.networks...)
			}
		}
		t.ranges[b.index].Store(newSpans(networks))
	}
}

// Run reloads the files of addresses when they change, until the context ends. If a file is
// unreadable or invalid, Run logs the error and keeps the previous addresses.
func (t *Table) Run(ctx context.Context) {
	if len(t.files) == 0 {
		return
	}
	tick := time.NewTicker(reread)
	defer tick.Stop()
	lost := make(map[string]bool)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.reload(lost)
		}
	}
}

// reload checks the files once. lost contains the files with a logged error.
func (t *Table) reload(lost map[string]bool) {
	for _, f := range t.files {
		changed, err := f.read()
		switch {
		case err != nil:
			if !lost[f.File] {
				lost[f.File] = true
				t.log.Warn("could not read bot addresses; keeping previous addresses", "err", err)
			}
		case changed:
			delete(lost, f.File)
			t.publish(f.bots)
			t.log.Info("bot addresses changed", "bot", f.Name, "path", f.File, "networks", len(f.networks))
		default:
			delete(lost, f.File)
		}
	}
}
