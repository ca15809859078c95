package snapshot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// TestRules has two pages for each rule: one that violates only this rule, and its corrected
// form.
func TestRules(t *testing.T) {
	pages := map[Rule][2]string{
		OnePage:          {`<main data-ai-page="a"></main><div data-ai-page="b"></div>`, `<main data-ai-page="a"></main><div data-ai-section="b"></div>`},
		GroupInSection:   {`<div data-ai-group="g"></div>`, `<div data-ai-section="s" data-ai-group="g"></div>`},
		SubgroupInGroup:  {`<div data-ai-section="s"><p data-ai-subgroup="g"></div>`, `<div data-ai-section="s"><div data-ai-group="g"><p data-ai-subgroup="h"></div></div>`},
		Depth:            {`<div data-ai-section="a" data-ai-group="b" data-ai-subgroup="c"><p data-ai-block="d"></div>`, `<div data-ai-section="a" data-ai-group="b"><p data-ai-block="d"></div>`},
		AttributeName:    {`<p data-ai-summar="x">S</p>`, `<p data-ai-summary="x">S</p>`},
		EmptyValue:       {`<p data-ai-content="  ">S</p>`, `<p data-ai-content="x">S</p>`},
		InputField:       {`<label>A <input name="a"></label>`, `<label>A <input name="a" data-ai-field="a"></label><input type="submit"><input type="hidden">`},
		FieldLabel:       {`<input data-ai-field="a">`, `<b data-ai-label="a">A</b><input data-ai-field="a">`},
		Unresolved:       {`<p data-ai-ref="x">R</p>`, `<p data-ai-ref="x">R</p><p id="x">X</p>`},
		SensitiveContext: {`<label>A <input type="tel" data-ai-field="a"></label>`, `<div data-ai-section="s" data-ai-context="personal"><label>A <input type="tel" data-ai-field="a"></label></div>`},
		EventAction:      {`<b data-ai-event="click">E</b>`, `<b data-ai-event="click" data-ai-action="go">E</b>`},
		OutputShape:      {`<b data-ai-content="x">` + strings.Repeat("long ", 100_000), `<b data-ai-content="x">short`},
	}
	for rule, p := range pages {
		for i, source := range p {
			findings, err := Lint(t.Context(), []byte("<!DOCTYPE html>\n<body>\n  "+source), address)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case i == 1 && len(findings) > 0:
				t.Errorf("%s: the correct page has findings: %+v", rule, findings)
			case i == 0 && (len(findings) != 1 || findings[0].Rule != rule || findings[0].Path == "" || findings[0].Message == ""):
				t.Errorf("%s: %+v", rule, findings)
			case i == 0 && rule != OutputShape && findings[0].Line != 3:
				t.Errorf("%s: line %d", rule, findings[0].Line)
			}
		}
	}
}

// TestReferences checks which references have a target.
func TestReferences(t *testing.T) {
	for source, want := range map[string]int{
		`<p data-ai-ref="s">R</p><div data-ai-section="s"></div>`:                            0,
		`<p data-ai-ref="s t">R</p><div data-ai-section="s"></div><div id="t"></div>`:        0,
		`<p data-ai-ref="the name">R</p><div data-ai-section="the name"></div>`:              0,
		`<p data-ai-depends="s, t">R</p><div data-ai-section="s"></div>`:                     1,
		`<p data-ai-depends="t u">R</p>`:                                                     2,
		`<p data-ai-ref="/other">R</p><p data-ai-ref="https://elsewhere.example/">R</p>`:     0,
		`<p data-ai-ref="#x">R</p>`:                                                          1,
		`<a data-ai-link="name" href="/x">L</a><p data-ai-ref="name">R</p>`:                  0,
		`<a data-ai-link="name" href="#">L</a>`:                                              1,
		`<a data-ai-link="name" href="">L</a>`:                                               1,
		`<a data-ai-link="name" href="#top">L</a><a data-ai-link="x" href="#y" id="y">L</a>`: 0,
		`<a data-ai-link="name">L</a>`:                                                       1,
		`<template><p id="x"></template><p data-ai-ref="x">R</p>`:                            0, // scripts may use the id
	} {
		findings, err := Lint(t.Context(), []byte(source), address)
		if err != nil || len(findings) != want {
			t.Errorf("%s: %d findings, want %d (%v): %+v", source, len(findings), want, err, findings)
		}
	}
}

// TestPlaces checks the positions of findings: columns count characters, and positions in
// documents of other character sets are those in the file.
func TestPlaces(t *testing.T) {
	const bad = `<p data-ai-content="">x</p>`
	for source, want := range map[string]string{
		bad:             "1:1 html > body > p",
		"\n\n  é" + bad: "3:4 html > body > p",
		"\r\n<b>\xfc</b>" + bad + "<meta charset=iso-8859-1>": "2:9 html > body > p",
		"\xEF\xBB\xBF<p>a<p>b" + bad:                          "1:9 html > body > p:nth-of-type(3)",
		`<div id="x"><div id="5"><i>` + bad:                   "1:28 div#x > div > i > p",
		"<table><tr><td>" + bad:                               "1:16 html > body > table > tbody > tr > td > p",
		"<script>'\n" + bad + "'</script>\n" + bad:            "3:1 html > body > p",
	} {
		findings, err := Lint(t.Context(), []byte(source), address)
		if err != nil || len(findings) != 1 {
			t.Errorf("%q: %v, %+v", source, err, findings)
			continue
		}
		f := findings[0]
		if diff := cmp.Diff(want, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Path)); diff != "" {
			t.Errorf("%q: %s", source, diff)
		}
	}
}

func TestLintJSON(t *testing.T) {
	findings, err := LintJSON([]byte(`{"page":"x","sections":[{"name":"s","groups":null}]}`))
	if err != nil || len(findings) != 1 || findings[0].Path != "/sections/0/groups" || findings[0].Rule != OutputShape {
		t.Errorf("%+v, %v", findings, err)
	}
	if findings, err := LintJSON([]byte(`{"page":"x"}`)); err != nil || len(findings) != 0 {
		t.Errorf("%+v, %v", findings, err)
	}
	if _, err := LintJSON([]byte(`{"page":"` + strings.Repeat("x", MaxJSON) + `"}`)); !errors.Is(err, millrace.ErrTooLarge) {
		t.Errorf("larger than a snapshot may be: %v", err)
	}
}
