package config

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"net/url"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/humanize"
)

// Report lists the values that a command uses.
type Report struct {
	Command string  `json:"command"` // name of the command
	File    string  `json:"file"`    // configuration file; "" if absent
	Values  []Value `json:"values"`  // values of the command's flags
	Policy  []Value `json:"policy"`  // members of the policy
	Other   []Value `json:"other"`   // keys of the file that are flags of other commands
}

// Value is one value with its origin.
type Value struct {
	Key    string `json:"key"`              // name of the flag, the member of the policy, or the environment variable
	Value  any    `json:"value"`            // value; null if not set
	From   string `json:"from"`             // FILE:LINE:COLUMN, an environment variable, or "default"
	Hidden bool   `json:"hidden,omitempty"` // a secret was removed from the value
}

// FromDefault is the origin of an unset value.
const FromDefault = "default"

const hiddenText = "(hidden)"

// Secret returns the value of an environment variable that is secret as a whole.
func Secret(name string) Value {
	return Value{Key: name, Value: hiddenText, From: "environment variable " + name, Hidden: true}
}

// Values yields the values of the file in no particular order.
func (c *Config) Values() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for key, s := range c.keys {
			if !yield(c.Show(key, s.value, s.place)) {
				return
			}
		}
	}
}

// Show returns the value of a flag without secrets.
func (c *Config) Show(flag string, value any, from string) Value {
	v := Value{Key: flag, Value: value, From: from}
	each := func(s string) string {
		redacted := withoutSecrets(flag, c.known[flag].Placeholder, s)
		v.Hidden = v.Hidden || redacted != s
		return redacted
	}
	switch value := value.(type) {
	case string:
		v.Value = each(value)
	case []string:
		out := make([]string, len(value))
		for i, s := range value {
			out[i] = each(s)
		}
		v.Value = out
	case []any: // a list from the configuration file
		out := make([]any, len(value))
		for i, s := range value {
			out[i] = each(fmt.Sprint(s))
		}
		v.Value = out
	}
	return v
}

// withoutSecrets returns a value without its secrets. It hides keys completely. From a URL, it
// removes the user and the query; from a webhook also the path; from an event target, everything
// except the kind and the origin.
func withoutSecrets(key, placeholder, s string) string {
	kind, raw, typed := "", s, placeholder == "KIND=URL"
	if typed {
		kind, raw, _ = strings.Cut(strings.TrimSpace(s), "=")
		kind += "="
	}
	u, err := url.Parse(raw)
	switch {
	case s == "":
		return ""
	case placeholder == "KEY", typed && (err != nil || u.Host == "" || strings.ContainsAny(kind, ":/?")):
		return hiddenText
	case !strings.Contains(s, "://"):
		if placeholder == "URL" && strings.ContainsAny(s, "@?") {
			return hiddenText // an invalid URL
		}
		return s
	case err != nil:
		return hiddenText
	case typed:
		return kind + u.Scheme + "://" + u.Host + "/" + hiddenText
	case u.User == nil && u.RawQuery == "" && key != "webhook":
		return s
	}
	redacted := u.Scheme + "://"
	if u.User != nil {
		redacted += hiddenText + "@"
	}
	if redacted += u.Host; key == "webhook" {
		return redacted + "/" + hiddenText
	}
	redacted += u.EscapedPath()
	if u.RawQuery != "" {
		redacted += "?" + hiddenText
	}
	return redacted
}

// WriteText writes the report for people. It omits flags that are not set and have no default.
func (r *Report) WriteText(w io.Writer) error {
	b := new(bytes.Buffer)
	file := r.File
	if file == "" {
		file = "no configuration file"
	}
	fmt.Fprintf(b, "millrace %s, with %s\n\n", r.Command, file)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = io.WriteString(t, "KEY\tVALUE\tFROM\n")
	left := 0
	for _, list := range [][]Value{r.Values, r.Policy} {
		for _, v := range list {
			if v.From == FromDefault && (v.Value == nil || reflect.ValueOf(v.Value).IsZero()) {
				left++
				continue
			}
			fmt.Fprintf(t, "%s\t%s\t%s\n", v.Key, canon.OneLine(shorten(valueText(v.Value))), v.From)
		}
	}
	_ = t.Flush()
	fmt.Fprintf(b, "\n%s not set; see millrace help %s\n", humanize.Quantity(int64(left), "other flag"), r.Command)
	for _, v := range r.Other {
		fmt.Fprintf(b, "%s, %s: for other commands\n", v.From, v.Key)
	}
	_, err := b.WriteTo(w)
	return err
}

// shorten limits the width of a column; --json has the full value.
func shorten(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// valueText returns a value on one line.
func valueText(v any) string {
	switch v := v.(type) {
	case []string:
		return strings.Join(v, ", ")
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, fmt.Sprint(e))
		}
		return strings.Join(parts, ", ")
	}
	return strings.ReplaceAll(fmt.Sprint(v), "\n", " ")
}
