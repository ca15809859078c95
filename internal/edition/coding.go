package edition

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// coding is a content coding (RFC 9110, section 8.4.1).
type coding uint8

// The codings, identity first.
const (
	identity coding = iota
	brotliCoding
	zstdCoding
	gzipCoding
	codings
)

// preference lists the codings except identity, best first.
var preference = [...]coding{brotliCoding, zstdCoding, gzipCoding}

// codingTable names the codings. The suffix is part of the validator of a coded representation. It
// must change when the encoder returns other bytes for the same input. Otherwise a client could
// combine ranges of two encodings. A test compares the bytes.
var codingTable = [codings]struct{ name, suffix string }{
	identity:     {"identity", ""},
	brotliCoding: {"br", "-br2"},
	zstdCoding:   {"zstd", "-zstd"},
	gzipCoding:   {"gzip", "-gzip"},
}

// codingValues are the values of Content-Encoding, allocated once.
var codingValues = [codings][]string{brotliCoding: {"br"}, zstdCoding: {"zstd"}, gzipCoding: {"gzip"}}

// codingOf returns the coding that a token names.
func codingOf(token string) (coding, bool) {
	for c := range codings {
		if strings.EqualFold(token, codingTable[c].name) {
			return c, true
		}
	}
	return gzipCoding, strings.EqualFold(token, "x-gzip")
}

// codingSet is a set of codings, one bit each.
type codingSet uint8

const allCodings codingSet = 1<<codings - 1

func (s codingSet) has(c coding) bool { return s&(1<<c) != 0 }

// negotiate returns the offered coding with the highest weight in Accept-Encoding (RFC 9110,
// section 12.5.3). Among equal weights, the order of preference decides, with identity last. If no
// coding is acceptable, negotiate returns identity, which is no worse for the client than a 406.
func negotiate(fields []string, offer codingSet) coding {
	if len(fields) == 0 || offer == 1<<identity {
		return identity
	}
	weights, star := weighted(fields)
	best, most := identity, 0
	for _, c := range preference {
		weight := weights[c]
		if weight == unlisted {
			weight = star
		}
		if offer.has(c) && weight > most {
			best, most = c, weight
		}
	}
	// If identity is not listed, it is acceptable with the lowest weight.
	if weights[identity] > most {
		return identity
	}
	return best
}

// refuses reports whether Accept-Encoding fields exclude identity.
func refuses(fields []string) bool {
	weights, star := weighted(fields)
	return weights[identity] == 0 || weights[identity] == unlisted && star == 0
}

// unlisted is the weight of a coding that a field does not name.
const unlisted = -1

// weighted returns the weights of the codings and of "*" in Accept-Encoding fields, in
// thousandths.
func weighted(fields []string) (weights [codings]int, star int) {
	weights, star = [codings]int{unlisted, unlisted, unlisted, unlisted}, unlisted
	for _, field := range fields {
		for len(field) > 0 {
			var element string
			element, field, _ = strings.Cut(field, ",")
			token, params, _ := strings.Cut(element, ";")
			weight, ok := quality(params)
			if !ok {
				continue
			}
			token = strings.Trim(token, " \t")
			if token == "*" {
				star = weight
			} else if c, ok := codingOf(token); ok {
				weights[c] = max(weights[c], weight)
			}
		}
	}
	return weights, star
}

// quality parses the parameters of an element as a weight in thousandths.
func quality(params string) (int, bool) {
	params = strings.Trim(params, " \t;")
	if params == "" {
		return 1000, true
	}
	if len(params) < 3 || params[0]|0x20 != 'q' || params[1] != '=' {
		return 0, false
	}
	integer, part, _ := strings.Cut(params[2:], ".")
	if integer != "0" && integer != "1" || len(part) > 3 {
		return 0, false
	}
	weight := int(integer[0]-'0') * 1000
	for unit := 100; part != ""; unit, part = unit/10, part[1:] {
		if part[0] < '0' || part[0] > '9' {
			return 0, false
		}
		weight += int(part[0]-'0') * unit
	}
	return weight, weight <= 1000
}

// encoders holds encoders and decoders for reuse. The zero value is ready to use and safe for
// concurrent use.
type encoders struct {
	once                  sync.Once
	turns                 chan struct{}      // contains a value for each running encoder; capacity is the number of processors
	deflaters             chan *flate.Writer // encoders that are not in use
	gzip, brotli, buffers sync.Pool
	inflaters             sync.Pool
	streams               [codings]sync.Pool // encoders for the method stream
	zstdOnce              sync.Once
	zstd                  *zstd.Encoder
}

// Settings of the encoders. The brotli level is 5 because pages are encoded during their first
// request. The zstd window is within the limit of RFC 9659.
const (
	gzipLevel   = 6
	brotliLevel = 5
	zstdLevel   = zstd.SpeedBetterCompression
	zstdWindow  = 4 << 20
	// Pages are small, and the memory of a brotli encoder grows with its window.
	brotliPageWindow = 18
)

func (e *encoders) init() {
	e.once.Do(func() {
		n := runtime.GOMAXPROCS(0)
		e.turns, e.deflaters = make(chan struct{}, n), make(chan *flate.Writer, n)
	})
}

// turn waits until an encoder may run. Each encoder takes megabytes, and running more of them than
// there are processors is no faster. The caller calls done after encoding.
func (e *encoders) turn() (done func()) {
	e.init()
	e.turns <- struct{}{}
	return func() { <-e.turns }
}

// encode returns b in a coding, in a slice without spare capacity.
func (e *encoders) encode(c coding, b []byte) ([]byte, error) {
	if c == identity {
		return bytes.Clone(b), nil
	}
	defer e.turn()()
	buf := e.buffer()
	defer e.free(buf)
	var err error
	switch c {
	case gzipCoding:
		w, _ := e.gzip.Get().(*gzip.Writer)
		if w == nil {
			if w, err = gzip.NewWriterLevel(buf, gzipLevel); err != nil {
				return nil, err
			}
		} else {
			w.Reset(buf)
		}
		err = writeClose(w, b)
		e.gzip.Put(w)
	case brotliCoding:
		w, _ := e.brotli.Get().(*brotli.Writer)
		if w == nil {
			w = brotli.NewWriterOptions(buf, brotli.WriterOptions{Quality: brotliLevel, LGWin: brotliPageWindow})
		} else {
			w.Reset(buf)
		}
		err = writeClose(w, b)
		e.brotli.Put(w)
	case zstdCoding:
		e.zstdOnce.Do(func() {
			e.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstdLevel), zstd.WithEncoderConcurrency(1),
				zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstdWindow/4))
		})
		if err != nil || e.zstd == nil {
			return nil, fmt.Errorf("zstd encoder: %w", err)
		}
		return slices.Clip(bytes.Clone(e.zstd.EncodeAll(b, buf.AvailableBuffer()))), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s encoder: %w", codingTable[c].name, err)
	}
	return slices.Clip(bytes.Clone(buf.Bytes())), nil
}

func writeClose(w io.WriteCloser, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	return w.Close()
}

// deflate writes b to buf in the deflate format, with a full flush at the end. It reuses encoders,
// because a new one takes 800 kB. They are not in a pool, because the garbage collector would
// delete them between two editions.
func (e *encoders) deflate(buf *bytes.Buffer, b []byte) (err error) {
	e.init()
	var w *flate.Writer
	select {
	case w = <-e.deflaters:
		w.Reset(buf)
	default:
		if w, err = flate.NewWriter(buf, gzipLevel); err != nil {
			return err
		}
	}
	if _, err = w.Write(b); err == nil {
		err = w.Flush()
	}
	select {
	case e.deflaters <- w:
	default:
	}
	return err
}

// inflate writes the decoded bytes of coded, which is in the deflate format. It reuses decoders,
// because a new one takes 40 kB.
func (e *encoders) inflate(w io.Writer, coded []byte) error {
	r, _ := e.inflaters.Get().(io.Reader)
	if r == nil {
		r = flate.NewReader(bytes.NewReader(coded))
	} else if err := r.(flate.Resetter).Reset(bytes.NewReader(coded), nil); err != nil {
		return err
	}
	_, err := io.Copy(w, r)
	e.inflaters.Put(r)
	return err
}

// stream encodes what write writes, and writes the result to w. It reuses encoders, because a new
// zstd encoder takes 8 MB.
func (e *encoders) stream(c coding, w io.Writer, write func(io.Writer) error) error {
	enc, _ := e.streams[c].Get().(streamEncoder)
	if enc == nil {
		var err error
		if enc, err = newStream(c); err != nil {
			return fmt.Errorf("%s encoder: %w", codingTable[c].name, err)
		}
	}
	enc.Reset(w)
	if err := write(enc); err != nil {
		return err
	}
	if err := enc.Close(); err != nil {
		return fmt.Errorf("%s encoder: %w", codingTable[c].name, err)
	}
	e.streams[c].Put(enc)
	return nil
}

// streamEncoder is an encoder that can be reused after Close. Close does not close the underlying
// writer.
type streamEncoder interface {
	io.WriteCloser
	Reset(w io.Writer)
}

func newStream(c coding) (streamEncoder, error) {
	switch c {
	case gzipCoding:
		return gzip.NewWriterLevel(nil, gzipLevel)
	case brotliCoding:
		// For lists of hashes, the output of V2 is smaller than that of NewWriterLevel and takes a
		// seventh of the time. For prose, both are equal.
		return brotli.NewWriterV2(nil, brotliLevel), nil
	case zstdCoding:
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstdLevel), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(zstdWindow))
	}
	return new(plain), nil
}

// plain is the identity coding as an encoder.
type plain struct{ io.Writer }

func (p *plain) Reset(w io.Writer) { p.Writer = w }
func (p *plain) Close() error      { return nil }

// buffer returns an empty buffer. free returns a buffer for reuse, unless it is larger than most
// pages need.
func (e *encoders) buffer() *bytes.Buffer {
	if b, _ := e.buffers.Get().(*bytes.Buffer); b != nil {
		return b
	}
	return new(bytes.Buffer)
}

func (e *encoders) free(b *bytes.Buffer) {
	if b.Cap() <= 256<<10 {
		b.Reset()
		e.buffers.Put(b)
	}
}
