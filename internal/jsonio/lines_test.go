package jsonio

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

func readLines(in string, l *Limits) (got []string, err error) {
	for line, err := range Lines(strings.NewReader(in), l) {
		if err != nil {
			return got, err
		}
		got = append(got, fmt.Sprintf("%d@%d %s", line.Number, line.Offset, line.Data))
	}
	return got, nil
}

func TestLines(t *testing.T) {
	big := `"` + strings.Repeat("x", 3*slack) + `"`
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"1", []string{"1@0 1"}},
		{"1\n", []string{"1@0 1"}},
		{"{}\r\n[]\r\n", []string{"1@0 {}", "2@4 []"}},
		{"1\n2\r\n3", []string{"1@0 1", "2@2 2", "3@5 3"}},
		{"1\n" + big + "\n3\n", []string{"1@0 1", "2@2 " + big, fmt.Sprintf("3@%d 3", len(big)+3)}},
	} {
		got, err := readLines(c.in, nil)
		if err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%.40q: %.200q, %v", c.in, got, err)
		}
	}
}

func TestLinesRefuses(t *testing.T) {
	for _, c := range []struct {
		name, in string
		limits   *Limits
		kind     error
		says     []string
		lines    int
	}{
		{"blank", "1\n\n2\n", nil, millrace.ErrInvalid, []string{"line 2, byte 2", "json-blank"}, 1},
		{"blank with CR", "1\r\n\r\n", nil, millrace.ErrInvalid, []string{"line 2, byte 3"}, 1},
		{"white space only", "1\n \t", nil, millrace.ErrInvalid, []string{"line 2, byte 2"}, 1},
		{"blank at the end", "1\n2\n\n", nil, millrace.ErrInvalid, []string{"line 3, byte 4"}, 2},
		{"byte order mark", "\ufeff1\n", nil, millrace.ErrInvalid, []string{"json-bom"}, 0},
		{"long", "1\n12345\n", &Limits{Value: 4}, millrace.ErrTooLarge, []string{"line 2, byte 2", "json-value"}, 1},
		{"very long", "1\n" + strings.Repeat("x", 4*slack), &Limits{Value: slack}, millrace.ErrTooLarge, []string{"line 2"}, 1},
		{"many", "1\n2\n3\n", &Limits{Count: 2}, millrace.ErrTooLarge, []string{"line 3, byte 4", "json-lines"}, 2},
		{"size", "1\n2\n3\n", &Limits{Size: 5}, millrace.ErrTooLarge, []string{"json-size"}, 2},
	} {
		got, err := readLines(c.in, c.limits)
		refused(t, c.name, err, c.kind, c.says...)
		if len(got) != c.lines {
			t.Errorf("%s: %d lines before the error, want %d", c.name, len(got), c.lines)
		}
	}
	if got, err := readLines("1234\r\n12\n", &Limits{Value: 4, Size: 9, Count: 2}); err != nil || len(got) != 2 {
		t.Errorf("just within the limits: %q, %v", got, err)
	}
	cause := errors.New("the wire was cut")
	for _, err := range Lines(iotest.ErrReader(cause), nil) {
		if !errors.Is(err, cause) {
			t.Errorf("%v is not the cause", err)
		}
	}
}

func TestLineDecode(t *testing.T) {
	const in = `{"etag":"a"}` + "\n" + `{"etag":1}` + "\r\n" + `{"etag":"c","etag":"d"}` + "\n" + `{"etag":"e"} {}` + "\n" + `{"etag":"f"}`
	var got []string
	for line, err := range Lines(strings.NewReader(in), nil) {
		if err != nil {
			t.Fatal(err)
		}
		var it item
		err = line.Decode(&it)
		switch line.Number {
		case 2:
			refused(t, "misfit", err, millrace.ErrInvalid, "line 2, byte 21 (/etag)", "json-type")
		case 3:
			refused(t, "duplicate", err, millrace.ErrInvalid, "line 3, byte 37 (/etag)", "json-duplicate")
		case 4:
			refused(t, "two values", err, millrace.ErrInvalid, "line 4, byte 62")
		default:
			if err != nil {
				t.Error(err)
			}
			got = append(got, it.ETag)
		}
	}
	if strings.Join(got, "") != "af" {
		t.Errorf("got %q", got)
	}
}
