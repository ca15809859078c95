package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/millrace/millrace"
)

const policyKey = "policy"

// setPolicy reads the policy. It rejects every ambiguous value, because a misunderstood refusal
// could become a permission.
func (c *Config) setPolicy(kv *ast.MappingValueNode) error {
	if c.Policy != nil {
		return fmt.Errorf("%s: key %q is set twice", c.place(kv.Key), policyKey)
	}
	p := new(millrace.Policy)
	if err := c.block(kv, policyKey, policyMembers(p)); err != nil {
		return err
	}
	c.Policy = p
	return nil
}

// member reads one member of a block, or a nested block.
type member struct {
	read   func(n ast.Node) error // its error contains the cause, not the position
	within map[string]member      // nested keys, instead of read
}

// MemberError is the error for a value in the policy.
type MemberError struct {
	Position string // file, line and column
	Member   string // dotted name, such as "policy.terms"
	Err      error  // cause, without the position and the name
}

// Error returns "millrace.yaml:3:10: policy.terms: cause".
func (e *MemberError) Error() string { return fmt.Sprintf("%s: %s: %v", e.Position, e.Member, e.Err) }

// Unwrap returns the cause.
func (e *MemberError) Unwrap() error { return e.Err }

// block reads the keys below a key.
func (c *Config) block(kv *ast.MappingValueNode, name string, members map[string]member) error {
	if kv.Value == nil || kv.Value.Type() == ast.NullType {
		return fmt.Errorf("%s: key %q has no value", c.place(kv.Key), name)
	}
	m, ok := kv.Value.(ast.MapNode)
	if !ok {
		return fmt.Errorf("%s: %s: not a block; the keys below it are %s", c.place(kv.Value), name, keysOf(members))
	}
	n := 0
	for it := m.MapRange(); it.Next(); {
		kv := it.KeyValue()
		key, place := kv.Key.GetToken().Value, c.place(kv.Key)
		full := name + "." + key
		mem, known := members[key]
		switch {
		case !known:
			return fmt.Errorf("%s: unknown key %q of %s; the keys are %s", place, key, name, keysOf(members))
		case mem.within != nil:
			if err := c.block(kv, full, mem.within); err != nil {
				return err
			}
		case kv.Value == nil || kv.Value.Type() == ast.NullType:
			return fmt.Errorf("%s: key %q has no value", place, full)
		default:
			if err := mem.read(kv.Value); err != nil {
				return &MemberError{c.place(kv.Value), full, err}
			}
			var v any
			if err := yaml.NodeToValue(kv.Value, &v); err != nil {
				return c.yamlError(err)
			}
			c.PolicyValues = append(c.PolicyValues, Value{Key: full, Value: v, From: c.place(kv.Key)})
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("%s: %s is empty; remove it", c.place(kv.Key), name)
	}
	return nil
}

func keysOf(members map[string]member) string {
	var names []string
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// policyMembers returns the keys of the policy block. Their read functions write to p.
func policyMembers(p *millrace.Policy) map[string]member {
	purpose := func(name millrace.Purpose) member {
		return leaf(p, boolValue, func(p *millrace.Policy, v bool) {
			if p.Purposes == nil {
				p.Purposes = make(map[millrace.Purpose]bool)
			}
			p.Purposes[name] = v
		})
	}
	return map[string]member{
		"terms":     leaf(p, textValue, func(p *millrace.Policy, v string) { p.Terms = v }),
		"payment":   leaf(p, textValue, func(p *millrace.Policy, v string) { p.Payment = v }),
		"contact":   leaf(p, contactValue, func(p *millrace.Policy, v string) { p.Contact = v }),
		"effective": leaf(p, timeValue, func(p *millrace.Policy, v time.Time) { p.Effective = v }),
		"updated":   leaf(p, pastValue, func(p *millrace.Policy, v time.Time) { p.Updated = v }),
		"revision":  leaf(p, countValue, func(p *millrace.Policy, v int) { p.Revision = v }),
		"retention": leaf(p, spanValue, func(p *millrace.Policy, v time.Duration) { p.Retention = v }),
		"access":    leaf(p, textValue, func(p *millrace.Policy, v string) { p.Access = v }),
		"consumers": leaf(p, listValue, func(p *millrace.Policy, v []string) { p.Consumers = v }),
		"purposes": {within: map[string]member{
			string(millrace.AIInput): purpose(millrace.AIInput),
			string(millrace.AITrain): purpose(millrace.AITrain),
			string(millrace.Search):  purpose(millrace.Search),
		}},
		"requirements": {within: map[string]member{
			"attribution": leaf(p, boolValue, func(p *millrace.Policy, v bool) { p.Requirements.Attribution = v }),
			"link-back":   leaf(p, boolValue, func(p *millrace.Policy, v bool) { p.Requirements.LinkBack = v }),
			"notice":      leaf(p, boolValue, func(p *millrace.Policy, v bool) { p.Requirements.Notice = v }),
		}},
		"rate": {within: map[string]member{
			"per-second": leaf(p, rateValue, func(p *millrace.Policy, v float64) { p.Rate.PerSecond = v }),
			"per-day":    leaf(p, countValue, func(p *millrace.Policy, v int) { p.Rate.PerDay = v }),
			"note":       leaf(p, textValue, func(p *millrace.Policy, v string) { p.Rate.Note = v }),
		}},
	}
}

// leaf returns a member with one value. If the value is invalid, the error is only the reason,
// because block adds the position in the file.
func leaf[T any](p *millrace.Policy, read func(ast.Node) (T, error), set func(*millrace.Policy, T)) member {
	return member{read: func(n ast.Node) error {
		v, err := read(n)
		if err != nil {
			return err
		}
		alone := new(millrace.Policy)
		set(alone, v)
		if err := alone.Validate(); err != nil {
			fault, _ := errors.AsType[*millrace.FormatError](err) // omits fault.Position, because the position in the file is better
			return errors.New(fault.Reason)
		}
		set(p, v)
		return nil
	}}
}

func textValue(n ast.Node) (string, error) {
	var s string
	switch n := n.(type) {
	case *ast.StringNode:
		s = n.Value
	case *ast.LiteralNode:
		s = strings.TrimSuffix(n.Value.Value, "\n")
	default:
		return "", errors.New("not a string; put it in quotes")
	}
	if strings.TrimSpace(s) == "" {
		return "", errors.New("the text is empty; remove the key")
	}
	return s, nil
}

// contactValue reads a URL or an e-mail address.
func contactValue(n ast.Node) (string, error) {
	s, err := textValue(n)
	if err == nil && strings.Contains(s, "@") && !strings.Contains(s, ":") && !strings.Contains(s, "/") {
		s = "mailto:" + s
	}
	return s, err
}

func listValue(n ast.Node) ([]string, error) {
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		return nil, errors.New("not a list; write one, such as [ExampleBot]")
	}
	var out []string
	for _, v := range list.Values {
		s, err := textValue(v)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, s) {
			return nil, fmt.Errorf("duplicate value %q", s)
		}
		out = append(out, s)
	}
	return out, nil
}

func boolValue(n ast.Node) (bool, error) {
	if n, ok := n.(*ast.BoolNode); ok {
		return n.Value, nil
	}
	return false, errors.New("not true or false")
}

// countValue reads a whole number of at least 1.
func countValue(n ast.Node) (int, error) {
	if n, ok := n.(*ast.IntegerNode); ok {
		if v, err := strconv.ParseInt(fmt.Sprint(n.Value), 10, 32); err == nil && v > 0 {
			return int(v), nil
		}
	}
	return 0, errors.New("not a whole number from 1 to 2147483647; for no limit, remove the key")
}

// rateValue reads a positive number.
func rateValue(n ast.Node) (float64, error) {
	var v float64
	switch n := n.(type) {
	case *ast.IntegerNode:
		v, _ = strconv.ParseFloat(fmt.Sprint(n.Value), 64)
	case *ast.FloatNode:
		v = n.Value
	}
	if v < minRate || math.IsInf(v, 0) {
		return 0, fmt.Errorf("not a number of at least %v, such as 0.5; for no limit, remove the key", minRate)
	}
	return v, nil
}

// minRate is about one request per quarter of an hour, the minimum of --rate.
const minRate = 0.001

// timeValue reads a day or a time, in whole seconds.
func timeValue(n ast.Node) (time.Time, error) {
	s, err := textValue(n)
	if err == nil {
		for _, form := range []string{time.DateOnly, time.RFC3339} {
			if t, err := time.Parse(form, s); err == nil {
				return t.UTC().Truncate(time.Second), nil
			}
		}
	}
	return time.Time{}, errors.New("not a day or a time; write 2026-01-31 or 2026-01-31T12:00:00Z")
}

// pastValue reads a time that is not in the future.
func pastValue(n ast.Node) (time.Time, error) {
	t, err := timeValue(n)
	if err == nil && t.After(time.Now()) {
		return t, fmt.Errorf("%s is in the future; omit this key to use the time when the block was changed", t.Format(time.RFC3339))
	}
	return t, err
}

// spanValue reads a duration.
func spanValue(n ast.Node) (time.Duration, error) {
	wrong := errors.New("not a duration; write one such as 30d or 12h")
	s, err := textValue(n)
	if err != nil {
		return 0, wrong
	}
	d, ok := ParseSpan(s)
	if !ok || d <= 0 {
		return 0, wrong
	}
	return d, nil
}

// ParseSpan parses a duration in days, such as 30d, or in Go's notation, such as 12h.
func ParseSpan(s string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err == nil && n >= 1 && n <= 36500
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// ParseExpiry parses a duration from now, or a date. "" is the zero time. Errors begin with the
// text.
func ParseExpiry(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.DateOnly, s)
	if err != nil {
		d, ok := ParseSpan(s)
		if !ok || d < time.Second {
			return time.Time{}, fmt.Errorf("%q: must be a duration, such as 90d or 12h, or a date, such as 2027-01-31", s)
		}
		at = now.Add(d)
	}
	if !at.After(now) {
		return time.Time{}, fmt.Errorf("%s: must be in the future", s)
	}
	return at.UTC().Truncate(time.Second), nil
}
