package policy

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace"
)

func TestARC(t *testing.T) {
	when := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	full := &millrace.Policy{
		Terms: "https://x.test/terms?a=<b>&c", Payment: "https://x.test/pay", Contact: "mailto:a@x.test", Effective: when, Updated: when, Revision: 3,
		Purposes:     map[millrace.Purpose]bool{millrace.AIInput: true, millrace.AITrain: false},
		Requirements: millrace.Requirements{Attribution: true, LinkBack: true, Notice: true},
		Rate:         millrace.RateHints{PerSecond: 0.3, PerDay: 500, Note: "less at noon"},
		Retention:    30 * 24 * time.Hour, Access: "everybody", Consumers: []string{"ExampleBot", "OtherBot"},
	}
	for _, p := range []*millrace.Policy{{}, full, {Rate: millrace.RateHints{PerDay: 10}}} {
		body := WriteARC(p)
		got, err := ReadARC(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(p, got); diff != "" {
			t.Errorf("%s (-written +read):\n%s", body, diff)
		}
	}
	for _, bad := range []string{`[]`, `{"purposes":{"sell":true}}`, `{"crawl_rate":"often"}`, `{"purposes":{"search":"no"}}`, `{"requests_per_day":-1}`, `{`} {
		if p, err := ReadARC([]byte(bad)); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: %+v, %v", bad, p, err)
		}
	}
	if p, err := ReadARC([]byte(`{"terms":"ask us","updated":"soon","retention_seconds":null,"requests_per_day":1e300,"retention_seconds_":1}`)); err != nil || p.Terms != "" || p.Rate.PerDay != 0 {
		t.Errorf("text instead of URLs: %+v, %v", p, err)
	}
}

func TestARCRate(t *testing.T) {
	for _, r := range []millrace.RateHints{{PerSecond: 0.25}, {PerSecond: 3, PerDay: 9}, {PerDay: 1000}} {
		s := WriteARCRate(r)
		got, ok := ReadARCRate(s)
		if !ok || math.Abs(got-max(r.PerSecond, 0)) > 1e-12 && r.PerSecond > 0 {
			t.Errorf("%+v is %q, %v a second", r, s, got)
		}
	}
	if s := WriteARCRate(millrace.RateHints{}); s != "" {
		t.Errorf("no rate is written as %q", s)
	}
}

// FuzzARC checks that a policy that was read is the same after it is written and read again.
func FuzzARC(f *testing.F) {
	f.Add([]byte(`{"revision":3,"effective":"2026-05-06T07:08:09Z","terms":"https://x.test/","contact":"mailto:a@x.test","purposes":{"ai-train":false},"crawl_rate":"30/min","requests_per_day":1.5,"crawl_note":" a  b ","retention_seconds":1e9,"access":"all","approved_consumers":["Bot"]}`))
	f.Add([]byte(`{"requirements":{"attribution":true},"retention_seconds":null}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := ReadARC(in)
		if err != nil {
			return
		}
		again, err := ReadARC(WriteARC(p))
		if err != nil {
			t.Fatalf("%s: %v", WriteARC(p), err)
		}
		if diff := cmp.Diff(WriteARC(p), WriteARC(again)); diff != "" {
			t.Errorf("(-once +twice):\n%s", diff)
		}
	})
}
