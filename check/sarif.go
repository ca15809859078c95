package check

import (
	"cmp"
	"encoding/json"
	"io"
	"net/url"
)

// SARIF is the version of the format that [Report.WriteSARIF] writes.
const SARIF = "2.1.0"

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	sarifHome   = "https://github.com/millrace/millrace"
)

type (
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifTags struct {
		Tags []string `json:"tags"`
	}
	sarifRule struct {
		ID         string     `json:"id"`
		Short      sarifText  `json:"shortDescription"`
		Full       sarifText  `json:"fullDescription"`
		Help       sarifText  `json:"help"`
		Default    sarifLevel `json:"defaultConfiguration"`
		Properties sarifTags  `json:"properties"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		Start int `json:"startLine"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"` // GitHub requires it
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifNote struct {
		Level      string     `json:"level"`
		Message    sarifText  `json:"message"`
		Descriptor sarifRefer `json:"associatedRule"`
	}
	sarifRefer struct {
		ID    string `json:"id"`
		Index int    `json:"index"`
	}
	sarifInvocation struct {
		Successful bool        `json:"executionSuccessful"`
		Notes      []sarifNote `json:"toolExecutionNotifications"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
)

// WriteSARIF writes the findings as SARIF 2.1.0, for tools that show results of code analysis. A
// violated MUST is an error, a violated SHOULD a warning, and a rule that could not run a
// notification. version is the version of the program.
func (r *Report) WriteSARIF(w io.Writer, version string) error {
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{"millrace", cmp.Or(version, "(devel)"), sarifHome, []sarifRule{}}},
		Invocations: []sarifInvocation{{Successful: true, Notes: []sarifNote{}}}, Results: []sarifResult{},
	}
	level := map[Level]string{Must: "error", Should: "warning"}
	index := make(map[string]int)
	for _, o := range r.Outcomes {
		rule := o.Rule
		if _, ok := index[rule.ID]; ok {
			continue
		}
		index[rule.ID] = len(index)
		help := "Section " + rule.Section + " demands (" + string(rule.Level) + "): " + rule.Sentence + " " + cmp.Or(rule.Fix, "To fix a finding, change the response at the finding's URL so that it meets this rule.")
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			rule.ID, sarifText{rule.Sentence}, sarifText{rule.Sentence}, sarifText{help}, sarifLevel{level[rule.Level]}, sarifTags{[]string{o.Protocol}},
		})
		if o.State == NotRun && r.Protocols[o.Protocol].Found {
			note := sarifNote{"note", sarifText{"not run: " + o.Reason}, sarifRefer{rule.ID, index[rule.ID]}}
			run.Invocations[0].Notes = append(run.Invocations[0].Notes, note)
		}
	}
	for _, f := range r.Findings {
		text := "got: " + f.Got + "; want: " + f.Want
		if f.Fix != "" {
			text += "; fix: " + f.Fix
		}
		uri := r.Site
		if u, err := url.Parse(f.URL); err == nil && f.URL != "" {
			uri = u.String()
		}
		at := sarifLocation{sarifPhysical{sarifArtifact{uri}, sarifRegion{1}}}
		run.Results = append(run.Results, sarifResult{f.Rule, index[f.Rule], level[f.Level], sarifText{text}, []sarifLocation{at}})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{sarifSchema, SARIF, []sarifRun{run}})
}
