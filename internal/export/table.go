package export

import (
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	spec "github.com/parquet-go/parquet-go/format"
)

// A row group ends when its values have groupBytes bytes, or when it has groupRows rows. A writer
// holds one compressed group in memory. A page of a column ends at about pageBytes.
const (
	groupBytes = 16 << 20
	groupRows  = 100_000
	pageBytes  = 256 << 10
)

// boundBytes is the maximum length of values in the statistics of a column. A column with a
// longer value has no minimum and maximum.
const boundBytes = 1 << 10

// table writes rows of type T, a struct, to a file of Apache Parquet. The fields are strings, lists
// of strings, int32, times as int64, and booleans. Their tags are those of parquet-go: with the
// option "optional", the zero value is null. A nil pointer is also null.
//
// It uses only the encoding parts of parquet-go. The writer of parquet-go, which supports every
// type, would add 4 MB to the binary (ADR 40).
type table[T any] struct {
	out     *counter
	encoder *zstd.Encoder
	columns []*column
	meta    spec.FileMetaData
	size    int // bytes in the current group
	rows    int
}

// column collects the values of one field in a row group.
type column struct {
	kind           spec.Type
	optional, list bool
	chunk          spec.ColumnMetaData
	pages          []byte // complete pages

	words      map[string]int32 // index of each value in the dictionary. If nil, there is no dictionary.
	dictionary []byte

	// Bounds of the values, by kind. They are valid if bounded is set.
	bounded, any bool
	from, to     int64
	first, last  string

	// The page in progress.
	values           []byte
	indexes          []int32
	repeats, defined []uint8 // repetition and definition levels
	nulls, rows      int
}

// newEncoder returns the encoder that all columns share. Its window is larger than a page, unless
// a single value is larger than the window.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(512<<10), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
}

func newTable[T any](w io.Writer, name string, encoder *zstd.Encoder) *table[T] {
	row := reflect.TypeFor[T]()
	t := &table[T]{out: newCounter(w), encoder: encoder}
	t.meta.Version = 2
	t.meta.CreatedBy = "millrace version 1(build 0)" // version of the schema, not of the program, so equal pages produce equal bytes
	t.meta.Schema = thrift.Slice[spec.SchemaElement]{{Name: name, NumChildren: thrift.New(int32(row.NumField()))}}
	for i := range row.NumField() {
		c, elements := newColumn(row.Field(i))
		t.columns = append(t.columns, c)
		t.meta.Schema = append(t.meta.Schema, elements...)
		t.meta.ColumnOrders = append(t.meta.ColumnOrders, spec.ColumnOrder{Value: new(spec.TypeDefinedOrder)})
	}
	_, _ = t.out.Write([]byte("PAR1")) // buffered; later writes report errors
	return t
}

// newColumn returns the column of a field, and the field's elements of the schema.
func newColumn(f reflect.StructField) (*column, []spec.SchemaElement) {
	tag := strings.Split(f.Tag.Get("parquet"), ",")
	c := &column{optional: slices.Contains(tag, "optional") || f.Type.Kind() == reflect.Pointer, list: slices.Contains(tag, "list")}
	if slices.Contains(tag, "dict") {
		c.words = make(map[string]int32)
	}
	path := []string{tag[0]}
	leaf := spec.SchemaElement{Name: tag[0], RepetitionType: thrift.New(spec.Required)}
	if c.optional {
		leaf.RepetitionType = thrift.New(spec.Optional)
	}
	var elements []spec.SchemaElement
	if c.list {
		leaf.ConvertedType, leaf.LogicalType.Value, leaf.NumChildren = thrift.New(deprecated.List), new(spec.ListType), thrift.New[int32](1)
		elements = append(elements, leaf, spec.SchemaElement{Name: "list", RepetitionType: thrift.New(spec.Repeated), NumChildren: thrift.New[int32](1)})
		leaf = spec.SchemaElement{Name: "element", RepetitionType: thrift.New(spec.Required)}
		path = append(path, "list", "element")
	}
	switch f.Type.Kind() {
	case reflect.Int32:
		c.kind = spec.Int32
		leaf.ConvertedType, leaf.LogicalType.Value = thrift.New(deprecated.Int32), &spec.IntType{BitWidth: 32, IsSigned: true}
	case reflect.Int64:
		c.kind = spec.Int64
		leaf.ConvertedType = thrift.New(deprecated.TimestampMillis)
		leaf.LogicalType.Value = &spec.TimestampType{IsAdjustedToUTC: true, Unit: spec.TimeUnit{Value: new(spec.MilliSeconds)}}
	case reflect.String, reflect.Slice:
		c.kind = spec.ByteArray
		leaf.ConvertedType, leaf.LogicalType.Value = thrift.New(deprecated.UTF8), new(spec.StringType)
	default: // bool or *bool
		c.kind = spec.Boolean
	}
	leaf.Type = thrift.New(c.kind)
	c.chunk.PathInSchema = path
	c.begin()
	return c, append(elements, leaf)
}

// begin resets the column for a row group.
func (c *column) begin() {
	clear(c.words)
	c.dictionary, c.pages = c.dictionary[:0], c.pages[:0]
	c.bounded, c.any = c.kind != spec.Boolean && !c.list, false
	c.chunk = spec.ColumnMetaData{Type: c.kind, PathInSchema: c.chunk.PathInSchema, Codec: spec.Zstd, Encoding: thrift.Slice[spec.Encoding]{spec.Plain}}
	if c.optional || c.list {
		c.chunk.Encoding = append(c.chunk.Encoding, spec.RLE)
	}
	if c.words != nil {
		c.chunk.Encoding = append(c.chunk.Encoding, spec.RLEDictionary)
	}
}

// add adds the value of a row.
func (c *column) add(v reflect.Value) {
	c.rows++
	switch {
	case c.list:
		for i := range v.Len() {
			c.level(uint8(min(1, i)), 1) //nolint:gosec // 0 or 1
			c.value(v.Index(i))
		}
		if v.Len() == 0 {
			c.level(0, 0)
		}
	case c.optional && v.IsZero():
		c.level(0, 0)
	default:
		c.level(0, 1)
		c.value(reflect.Indirect(v))
	}
}

// level adds the levels of a value: whether it repeats in its row, and whether it is defined.
func (c *column) level(repeat, defined uint8) {
	c.repeats, c.defined = append(c.repeats, repeat), append(c.defined, defined)
	if defined == 0 {
		c.nulls++
	}
}

func (c *column) value(v reflect.Value) {
	switch c.kind {
	case spec.Boolean:
		i := len(c.indexes)
		c.indexes = append(c.indexes, 0)
		if i%8 == 0 {
			c.values = append(c.values, 0)
		}
		if v.Bool() {
			c.values[i/8] |= 1 << (i % 8)
		}
	case spec.ByteArray:
		s := v.String()
		if c.bounded = c.bounded && len(s) <= boundBytes; c.bounded {
			if !c.any || s < c.first {
				c.first = s
			}
			if !c.any || s > c.last {
				c.last = s
			}
		}
		if c.words == nil {
			c.values = appendText(c.values, s)
			break
		}
		i, found := c.words[s]
		if !found {
			i = int32(len(c.words)) //nolint:gosec // at most the values of a group
			c.words[s] = i
			c.dictionary = appendText(c.dictionary, s)
		}
		c.indexes = append(c.indexes, i)
	default:
		n := v.Int()
		if !c.any || n < c.from {
			c.from = n
		}
		if !c.any || n > c.to {
			c.to = n
		}
		c.values = c.appendNumber(c.values, n)
	}
	c.any = true
}

func (c *column) appendNumber(b []byte, n int64) []byte {
	if c.kind == spec.Int32 {
		return binary.LittleEndian.AppendUint32(b, uint32(n)) //nolint:gosec // the value of an int32
	}
	return binary.LittleEndian.AppendUint64(b, uint64(n)) //nolint:gosec // the same bits
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...) //nolint:gosec // texts are shorter
}

// page appends a page to b: its header, the levels uncompressed, and the compressed values.
func (c *column) page(b []byte, header *spec.PageHeader, levels, values []byte, encoder *zstd.Encoder) ([]byte, error) {
	packed := encoder.EncodeAll(values, nil)
	header.UncompressedPageSize, header.CompressedPageSize = int32(len(levels)+len(values)), int32(len(levels)+len(packed)) //nolint:gosec // pages are smaller
	head, err := thrift.Marshal(new(thrift.CompactProtocol), header)
	if err != nil {
		return b, err
	}
	c.chunk.TotalUncompressedSize += int64(len(head) + len(levels) + len(values))
	c.chunk.TotalCompressedSize += int64(len(head) + len(levels) + len(packed))
	return append(append(append(b, head...), levels...), packed...), nil
}

// endPage completes the page in progress.
func (c *column) endPage(encoder *zstd.Encoder) error {
	if c.rows == 0 {
		return nil
	}
	var repeats, defined []byte
	var err error
	levels := rle.Encoding{BitWidth: 1}
	if c.list {
		repeats, err = levels.EncodeLevels(nil, c.repeats)
	}
	if err == nil && (c.list || c.optional) {
		defined, err = levels.EncodeLevels(nil, c.defined)
	}
	values, encoding := c.values, spec.Plain
	if c.words != nil && err == nil {
		encoding = spec.RLEDictionary
		values, err = new(rle.DictionaryEncoding).EncodeInt32(nil, c.indexes)
	}
	if err != nil {
		return err
	}
	header := &spec.PageHeader{Type: spec.DataPageV2, DataPageHeaderV2: thrift.New(spec.DataPageHeaderV2{
		NumValues: int32(len(c.defined)), NumNulls: int32(c.nulls), NumRows: int32(c.rows), Encoding: encoding, //nolint:gosec // pages are smaller
		RepetitionLevelsByteLength: int32(len(repeats)), DefinitionLevelsByteLength: int32(len(defined)), IsCompressed: thrift.New(true), //nolint:gosec // the same
	})}
	c.chunk.NumValues += int64(len(c.defined))
	c.chunk.Statistics.NullCount += int64(c.nulls)
	c.pages, err = c.page(c.pages, header, slices.Concat(repeats, defined), values, encoder)
	c.values, c.indexes, c.repeats, c.defined, c.nulls, c.rows = c.values[:0], c.indexes[:0], c.repeats[:0], c.defined[:0], 0, 0
	return err
}

// end completes the values of a row group, and returns the dictionary page.
func (c *column) end(encoder *zstd.Encoder) (dictionary []byte, err error) {
	if err := c.endPage(encoder); err != nil {
		return nil, err
	}
	if s := &c.chunk.Statistics; c.bounded && c.any && c.kind == spec.ByteArray {
		s.MinValue, s.MaxValue = []byte(c.first), []byte(c.last)
	} else if c.bounded && c.any {
		s.MinValue, s.MaxValue = c.appendNumber(nil, c.from), c.appendNumber(nil, c.to)
	}
	if c.words == nil {
		return nil, nil
	}
	header := &spec.PageHeader{Type: spec.DictionaryPage, DictionaryPageHeader: thrift.New(spec.DictionaryPageHeader{
		NumValues: int32(len(c.words)), Encoding: spec.Plain, //nolint:gosec // at most the values of a group
	})}
	return c.page(nil, header, nil, c.dictionary, encoder)
}

// write adds a row of about size bytes, and ends the group if it is full.
func (t *table[T]) write(row *T, size int) error {
	v := reflect.ValueOf(row).Elem()
	for i, c := range t.columns {
		c.add(v.Field(i))
		if len(c.values)+4*len(c.indexes) >= pageBytes {
			if err := c.endPage(t.encoder); err != nil {
				return err
			}
		}
	}
	t.size += size
	if t.rows++; t.size < groupBytes && t.rows < groupRows {
		return nil
	}
	return t.endGroup()
}

// endGroup writes the current row group.
func (t *table[T]) endGroup() error {
	group := spec.RowGroup{NumRows: int64(t.rows), FileOffset: t.out.n, Ordinal: int16(len(t.meta.RowGroups))} //nolint:gosec // readers do not use it
	for _, c := range t.columns {
		dictionary, err := c.end(t.encoder)
		if err != nil {
			return err
		}
		if dictionary != nil {
			c.chunk.DictionaryPageOffset = t.out.n
		}
		c.chunk.DataPageOffset = t.out.n + int64(len(dictionary))
		for _, b := range [][]byte{dictionary, c.pages} {
			if _, err := t.out.Write(b); err != nil {
				return err
			}
		}
		group.TotalByteSize += c.chunk.TotalUncompressedSize
		group.TotalCompressedSize += c.chunk.TotalCompressedSize
		group.Columns = append(group.Columns, spec.ColumnChunk{MetaData: c.chunk})
		c.begin()
	}
	t.meta.RowGroups = append(t.meta.RowGroups, group)
	t.meta.NumRows += group.NumRows
	t.size, t.rows = 0, 0
	return nil
}

// close completes the file.
func (t *table[T]) close() error {
	if t.rows > 0 {
		if err := t.endGroup(); err != nil {
			return err
		}
	}
	foot, err := thrift.Marshal(new(thrift.CompactProtocol), &t.meta)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	foot = append(binary.LittleEndian.AppendUint32(foot, uint32(len(foot))), "PAR1"...) //nolint:gosec // footers are smaller
	if _, err := t.out.Write(foot); err != nil {
		return err
	}
	return t.out.finish()
}
