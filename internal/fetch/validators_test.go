package fetch

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidators(t *testing.T) {
	const date = "Sat, 01 Jan 2000 00:00:00 GMT"
	for name, c := range map[string]struct{ sent, want Validators }{
		"both":                  {Validators{`W/"a"`, date}, Validators{`W/"a"`, date}},
		"none":                  {},
		"ETag":                  {Validators{ETag: `"a b, c"`}, Validators{ETag: `"a b, c"`}},
		"no quotes":             {Validators{ETag: `a`}, Validators{ETag: `a`}}, // verbatim
		"date":                  {Validators{Modified: date}, Validators{Modified: date}},
		"other date":            {Validators{Modified: "2000-01-01 00:00"}, Validators{Modified: "2000-01-01 00:00"}},
		"other letters":         {Validators{ETag: "\"\xe9\u30c4\""}, Validators{ETag: "\"\xe9\u30c4\""}},
		"control":               {Validators{"\"a\tb\"", "x\x7f"}, Validators{}},
		"any state":             {Validators{"*", date}, Validators{Modified: date}},
		"quoted star":           {Validators{ETag: `"*"`}, Validators{ETag: `"*"`}},
		"line":                  {Validators{"\"a\"\r\nX: y", date + "\n"}, Validators{}},
		"longest":               {Validators{strings.Repeat("e", 1024), strings.Repeat("m", 64)}, Validators{strings.Repeat("e", 1024), strings.Repeat("m", 64)}},
		"longer than the limit": {Validators{strings.Repeat("e", 1025), strings.Repeat("m", 65)}, Validators{}},
	} {
		resp := response("", "ETag", c.sent.ETag, "Last-Modified", c.sent.Modified)
		if diff := cmp.Diff(c.want, ValidatorsOf(resp)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		h := http.Header{}
		c.sent.Set(h) // validators as a manipulated store may return them
		if diff := cmp.Diff(c.want, Validators{h.Get("If-None-Match"), h.Get("If-Modified-Since")}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if c.want == (Validators{}) && len(h) != 0 {
			t.Errorf("%s: %v", name, h)
		}
	}
	// Within the second of the response, two states can have the same Last-Modified.
	for made, want := range map[string]string{date: "", "Sat, 01 Jan 2000 00:00:01 GMT": date, "Fri, 31 Dec 1999 23:59:59 GMT": date, "": date, "x": date} {
		resp := response("", "ETag", `"a"`, "Last-Modified", date, "Date", made)
		if got := ValidatorsOf(resp); got != (Validators{`"a"`, want}) {
			t.Errorf("response of %q: %v", made, got)
		}
	}
	b, err := json.Marshal([]Validators{{}, {`"a"`, "b"}})
	if got := string(b); err != nil || got != `[{},{"etag":"\"a\"","modified":"b"}]` {
		t.Errorf("%s, %v", got, err)
	}
}
