package savings

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// about compares numbers with a tolerance.
var about = cmpopts.EquateApprox(1e-12, 0)

// The figures of TCT draft-00 for one fetch, with the unit corrected: 85.3 kB at 0.06 kWh/GB
// are 5.1 mWh, not 5.1 Wh.
func TestDraftsExample(t *testing.T) {
	one := store.Traffic{Pulls: 1, Pages: 1, Fetched: 1, Text: 1960 * 4, Requests: 1, Received: 17_700, HTML: 1, HTMLReceived: 103_000, HTMLBytes: 13_900 * 4}
	want := &Saved{
		Pages: 1, Fetched: 1, SkipRate: new(0.0),
		HTML:     &HTML{Received: 103_000, Bytes: 55_600, Documents: 1, From: FromHTML},
		Requests: Figure{1, 1, 0, Measured},
		Bytes:    Figure{17_700, 103_000, 85_300, Measured},
		Tokens:   Figure{1_960, 13_900, 11_940, Estimate},
		KWh:      Figure{1.062e-6, 6.18e-6, 5.118e-6, Estimate},
	}
	if d := cmp.Diff(want, Of(one, one, Default()), about); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A second pull of 1000 pages whose HTML size is estimated from their text. The list names ten
// changed pages.
func TestEstimate(t *testing.T) {
	pull := store.Traffic{Pulls: 1, Pages: 1000, Fetched: 10, Text: 10_000, Requests: 11, Conditional: 11, NotModified: 0, Received: 50_000}
	site := store.Traffic{Pulls: 2, Pages: 2000, Fetched: 1010, Text: 1_010_000}
	c := Coefficients{KWhPerGB: 0.1, BytesPerToken: 5, HTMLPerText: 20, HTMLCompression: 4}
	want := &Saved{
		Pages: 1000, Fetched: 10, Skipped: 990, Conditional: 11, SkipRate: new(0.99), NotModifiedRate: new(0.0),
		HTML:     &HTML{Received: 5_000, Bytes: 20_000, From: FromText},
		Requests: Figure{11, 1000, 989, Measured},
		Bytes:    Figure{50_000, 5_000_000, 4_950_000, Estimate},
		Tokens:   Figure{2_000, 4_000_000, 3_998_000, Estimate},
		KWh:      Figure{5e-6, 5e-4, 4.95e-4, Estimate},
	}
	if d := cmp.Diff(want, Of(pull, site, c), about); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The source of the HTML size determines whether the savings are measured or estimated.
func TestOrigin(t *testing.T) {
	for _, tt := range []struct {
		name  string
		html  int64
		text  int64
		pages int64
		from  Origin
		basis Basis
	}{
		{"every page was fetched as HTML", 30, 100, 30, FromHTML, Measured},
		{"more HTML documents than pages", 31, 100, 30, FromHTML, Measured},
		{"one page was not fetched as HTML", 29, 100, 30, FromSample, Estimate},
		{"enough for a sample", sampled, 100, 30, FromSample, Estimate},
		{"too few for a sample", sampled - 1, 100, 30, FromText, Estimate},
		{"a small site", 3, 100, 3, FromHTML, Measured},
		{"text alone", 0, 100, 3, FromText, Estimate},
		{"nothing is known", 0, 0, 3, FromNone, Estimate},
	} {
		pull := store.Traffic{Pulls: 1, Pages: tt.pages, Received: 10}
		site := store.Traffic{HTML: tt.html, HTMLReceived: tt.html * 500, HTMLBytes: tt.html * 1000}
		if tt.text > 0 {
			site.Fetched, site.Text = 1, tt.text
		}
		s := Of(pull, site, Default())
		if s.HTML.From != tt.from || s.Bytes.Basis != tt.basis || s.Requests.Basis != Measured || s.Tokens.Basis != Estimate || s.KWh.Basis != Estimate {
			t.Errorf("%s: from %s, bytes %s, requests %s, tokens %s, energy %s", tt.name,
				s.HTML.From, s.Bytes.Basis, s.Requests.Basis, s.Tokens.Basis, s.KWh.Basis)
		}
	}
}

// A crawl that fetched lists in addition to pages has negative savings.
func TestNegative(t *testing.T) {
	pull := store.Traffic{Pulls: 1, Pages: 10, Fetched: 10, Text: 100, Requests: 25, Received: 24_000, HTML: 20, HTMLReceived: 20_000, HTMLBytes: 20_000}
	s := Of(pull, pull, Default())
	if s.Bytes.Saved != -14_000 || s.Requests.Saved != -15 || s.KWh.Saved >= 0 || s.Skipped != 0 {
		t.Errorf("%+v", s)
	}
}

// The savings of single pulls add up to the savings of all pulls.
func TestSums(t *testing.T) {
	a := store.Traffic{Pulls: 1, Pages: 500, Fetched: 500, Text: 600_000, Requests: 502, Conditional: 1, Received: 900_000}
	b := store.Traffic{Pulls: 1, Pages: 500, Fetched: 20, Unmodified: 7, Text: 22_000, Requests: 28, Conditional: 28, NotModified: 7, Received: 70_000}
	site := a
	site.Add(b)
	sum := Of(a, site, Default())
	sum.Add(Of(b, site, Default()))
	total := Of(site, site, Default())
	total.HTML = nil
	if d := cmp.Diff(total, sum, cmpopts.EquateApprox(0, 1), cmpopts.IgnoreFields(Saved{}, "KWh")); d != "" { // each is rounded
		t.Errorf("(-together +one by one):\n%s", d)
	}
	if math.Abs(total.KWh.Saved-sum.KWh.Saved) > 1e-9 {
		t.Errorf("%v and %v kWh", total.KWh, sum.KWh)
	}
	measured := Of(store.Traffic{Pulls: 1, Pages: 1}, store.Traffic{HTML: 1, HTMLReceived: 1}, Default())
	if measured.Add(sum); measured.Bytes.Basis != Estimate {
		t.Error("the sum of a measured and an estimated figure counts as measured")
	}
}

// The JSON never contains NaN, whatever the counts are.
func TestNothing(t *testing.T) {
	out, err := json.Marshal(Of(store.Traffic{}, store.Traffic{}, Default()))
	if err != nil || strings.Contains(string(out), "rate") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestCoefficients(t *testing.T) {
	c := Default()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	for _, k := range List(c) {
		if k.Source == "" || strings.Contains(k.Source, "configured") || k.Value <= 0 {
			t.Errorf("%+v", k)
		}
	}
	c.KWhPerGB = 0
	if err := c.Validate(); err != nil {
		t.Error("energy of 0:", err)
	}
	if got := List(c)[0].Source; !strings.HasSuffix(got, " 0.06") {
		t.Error(got)
	}
	for _, v := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		c := Default()
		c.HTMLCompression = v
		if err := c.Validate(); !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != "bad-coefficient" {
			t.Errorf("%v: %v", v, err)
		}
	}
}
