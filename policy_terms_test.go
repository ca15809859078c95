package millrace_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

func ExamplePolicy_Validate() {
	p := millrace.Policy{Terms: "/terms/", Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}}
	fault, _ := errors.AsType[*millrace.FormatError](p.Validate())
	fmt.Println(fault.Position)
	// Output: terms
}

func TestPolicyValidate(t *testing.T) {
	full := millrace.Policy{
		Terms: "https://example.com/terms/", Payment: "http://example.com/pricing/?a=1", Contact: "mailto:owner@example.com",
		Effective: time.Date(2025, 10, 1, 0, 0, 0, 0, time.UTC), Updated: time.Date(2025, 10, 15, 12, 0, 0, 0, time.UTC),
		Revision: 3, Purposes: map[millrace.Purpose]bool{millrace.AIInput: true, millrace.AITrain: false, millrace.Search: true},
		Requirements: millrace.Requirements{Attribution: true},
		Rate:         millrace.RateHints{PerSecond: 0.5, PerDay: 10_000, Note: "Höflich, bitte"},
		Retention:    30 * 24 * time.Hour, Access: "anybody", Consumers: []string{"ExampleBot", "other-bot_2.0"},
	}
	for _, good := range []millrace.Policy{{}, full} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, c := range []struct {
		member string
		change func(p *millrace.Policy)
	}{
		{"terms", func(p *millrace.Policy) { p.Terms = "terms.html" }},
		{"terms", func(p *millrace.Policy) { p.Terms = "mailto:a@example.com" }},
		{"terms", func(p *millrace.Policy) { p.Terms = "https://example.com/a b" }},
		{"payment", func(p *millrace.Policy) { p.Payment = "javascript:alert(1)" }},
		{"payment", func(p *millrace.Policy) { p.Payment = "https://user:word@example.com/" }},
		{"contact", func(p *millrace.Policy) { p.Contact = "owner@example.com" }},
		{"contact", func(p *millrace.Policy) { p.Contact = "https://example.com/\r\nX: y" }},
		{"effective", func(p *millrace.Policy) { p.Effective = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"updated", func(p *millrace.Policy) { p.Updated = time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"revision", func(p *millrace.Policy) { p.Revision = -1 }},
		{"purposes", func(p *millrace.Policy) { p.Purposes = map[millrace.Purpose]bool{"ai-anything": true} }},
		{"rate hints: per second", func(p *millrace.Policy) { p.Rate.PerSecond = math.NaN() }},
		{"rate hints: per second", func(p *millrace.Policy) { p.Rate.PerSecond = -1 }},
		{"rate hints: per day", func(p *millrace.Policy) { p.Rate.PerDay = -1 }},
		{"rate hints: note", func(p *millrace.Policy) { p.Rate.Note = "a\nb" }},
		{"retention", func(p *millrace.Policy) { p.Retention = -time.Hour }},
		{"retention", func(p *millrace.Policy) { p.Retention = time.Millisecond }},
		{"access", func(p *millrace.Policy) { p.Access = "\xff" }},
		{"consumers", func(p *millrace.Policy) { p.Consumers = []string{"Bot/1.0"} }},
		{"consumers", func(p *millrace.Policy) { p.Consumers = []string{""} }},
	} {
		p := full
		c.change(&p)
		err := p.Validate()
		if fault, ok := errors.AsType[*millrace.FormatError](err); !ok || !errors.Is(err, millrace.ErrInvalid) || fault.Position != c.member {
			t.Errorf("%s: %v", c.member, err)
		}
	}
	// All invalid members are reported together.
	bad := millrace.Policy{Terms: "x", Revision: -1}
	if err := bad.Validate(); len(err.(interface{ Unwrap() []error }).Unwrap()) != 2 {
		t.Error(err)
	}
}

func TestPolicyRefuses(t *testing.T) {
	p := &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false, millrace.Search: true}, Consumers: []string{"ExampleBot"}}
	var none *millrace.Policy
	if !p.Refuses(millrace.AITrain) || p.Refuses(millrace.Search) || p.Refuses(millrace.AIInput) || none.Refuses(millrace.AITrain) {
		t.Error("Refuses is not exactly the false purposes")
	}
	if !p.Approves("examplebot") || p.Approves("OtherBot") || none.Approves("ExampleBot") {
		t.Error("Approves is not exactly the consumers")
	}
}
