package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/config"
)

// policySwitch is one setting of the policy or of the rules for bots.
type policySwitch struct {
	Name    string // member of the policy, or name in a bot rule
	Label   string
	Value   string // selected choice
	Choices []choice
}

// Values of the switches of a policy.
const (
	unset   = ""
	allowed = "allowed"
	refused = "refused"
)

// policyPurposes are the purposes that a policy allows or refuses.
var policyPurposes = []struct {
	purpose millrace.Purpose
	label   string
}{
	{millrace.Search, "Search engines may index the pages"},
	{millrace.AIInput, "AI assistants may use the pages in answers"},
	{millrace.AITrain, "AI models may be trained on the pages"},
}

// botGroups are the groups of bots that rules can name.
var botGroups = []struct{ name, label string }{
	{"search", "Search engines"},
	{"user", "Bots that fetch a page for a person"},
	{"training", "Bots that collect training data for AI models"},
	{"unverified", "Bots that do not prove who they are"},
	{"bots", "All other bots"},
}

// botActions are the actions that a switch offers.
var botActions = []choice{
	{Value: unset, Label: "no rule"},
	{Value: "allow", Label: "allow"},
	{Value: "1/s", Label: "at most one request a second"},
	{Value: "402", Label: "ask for payment (402)"},
	{Value: "403", Label: "refuse (403)"},
}

// policyEdit contains the forms for the policy and the rules for bots.
type policyEdit struct {
	Purposes              []policySwitch
	Attribution, LinkBack bool
	Terms, Contact        string
	Bots                  []policySwitch
	NewBot                string   // typed name of one more bot
	Actions               []choice // for NewBot
	CanSave               bool
}

// edit returns the forms with the current settings.
func (d *Dashboard) edit() *policyEdit {
	e := &policyEdit{CanSave: d.site.Save != nil, Actions: botActions}
	now := d.currentPolicy()
	for _, p := range policyPurposes {
		value := unset
		if yes, set := now.Purposes[p.purpose]; set && yes {
			value = allowed
		} else if set {
			value = refused
		}
		e.Purposes = append(e.Purposes, newSwitch("purposes."+string(p.purpose), p.label, value,
			choice{Value: unset, Label: "not stated"}, choice{Value: allowed, Label: "yes"}, choice{Value: refused, Label: "no"}))
	}
	e.Attribution, e.LinkBack, e.Terms, e.Contact = now.Requirements.Attribution, now.Requirements.LinkBack, now.Terms, now.Contact
	rules := d.botRules()
	for _, g := range botGroups {
		i := slices.IndexFunc(rules, func(r BotRule) bool { return r.Name == g.name })
		value := unset
		if i >= 0 {
			value = rules[i].Action
			rules = slices.Delete(rules, i, i+1)
		}
		e.Bots = append(e.Bots, newSwitch(g.name, g.label, value, botActions...))
	}
	for _, r := range rules {
		e.Bots = append(e.Bots, newSwitch(r.Name, r.Name, r.Action, botActions...))
	}
	return e
}

// typed replaces the settings with the values of a rejected form.
func (e *policyEdit) typed(form url.Values) {
	again := func(switches []policySwitch, prefix string) {
		for i, s := range switches {
			if form.Has(prefix + s.Name) {
				switches[i] = newSwitch(s.Name, s.Label, form.Get(prefix+s.Name), withoutSelection(s.Choices)...)
			}
		}
	}
	again(e.Purposes, "")
	again(e.Bots, "rule-")
	if form.Has("terms") { // this is the form for the policy
		e.Attribution, e.LinkBack = form.Get("requirements.attribution") != "", form.Get("requirements.link-back") != ""
		e.Terms, e.Contact = form.Get("terms"), form.Get("contact")
	}
	e.NewBot = form.Get("name")
	e.Actions = newSwitch("", "", form.Get("action"), e.Actions...).Choices
}

// withoutSelection returns the choices without a selection.
func withoutSelection(choices []choice) []choice {
	choices = slices.Clone(choices)
	for i := range choices {
		choices[i].Here = false
	}
	return choices
}

// newSwitch returns a switch. It adds the value to the choices if it is not among them.
func newSwitch(name, title, value string, choices ...choice) policySwitch {
	choices = slices.Clone(choices)
	i := slices.IndexFunc(choices, func(c choice) bool { return c.Value == value })
	if i < 0 {
		label := value
		if rate, ok := strings.CutSuffix(value, "/s"); ok {
			label = "at most " + rate + " requests a second"
		}
		i, choices = len(choices), append(choices, choice{Value: value, Label: label})
	}
	choices[i].Here = true
	return policySwitch{name, title, value, choices}
}

func (d *Dashboard) currentPolicy() *millrace.Policy {
	if d.site.Policy == nil {
		return new(millrace.Policy)
	}
	return d.site.Policy
}

func (d *Dashboard) botRules() []BotRule {
	if d.site.Access == nil {
		return nil
	}
	return slices.Clone(d.site.Access.BotRules)
}

// savePolicy saves the policy.
func (d *Dashboard) savePolicy(r *http.Request) (*reply, error) {
	is, form := d.edit(), r.PostForm
	changes := map[string]any{}
	for _, s := range is.Purposes {
		switch value := form.Get(s.Name); value {
		case s.Value:
		case unset:
			changes[s.Name] = nil
		default:
			changes[s.Name] = value == allowed
		}
	}
	for name, was := range map[string]bool{"requirements.attribution": is.Attribution, "requirements.link-back": is.LinkBack} {
		if now := form.Get(name) != ""; now && !was {
			changes[name] = true
		} else if was && !now {
			changes[name] = nil
		}
	}
	for name, was := range map[string]string{"terms": is.Terms, "contact": is.Contact} {
		switch now := strings.TrimSpace(form.Get(name)); now {
		case was:
		case "":
			changes[name] = nil
		default:
			changes[name] = now
		}
	}
	return d.saveConfig(r, config.Changes{Policy: changes}, len(changes) == 0)
}

// saveBots saves the rules for bots. Existing rules keep their order, and new ones follow.
func (d *Dashboard) saveBots(r *http.Request) (*reply, error) {
	is, form := d.edit(), r.PostForm
	set := map[string]string{}
	for _, s := range is.Bots {
		set[s.Name] = cmp.Or(form.Get("rule-"+s.Name), unset)
	}
	names := make([]string, 0, len(is.Bots)+1)
	for _, rule := range d.botRules() {
		names = append(names, rule.Name)
	}
	for _, s := range is.Bots {
		names = append(names, s.Name)
	}
	if name := strings.TrimSpace(form.Get("name")); name != "" {
		names, set[name] = append(names, name), form.Get("action")
	}
	list, was := []string{}, []string{}
	for i, name := range names {
		if set[name] != unset && slices.Index(names, name) == i {
			list = append(list, name+"="+set[name])
		}
	}
	for _, rule := range d.botRules() {
		was = append(was, rule.Name+"="+rule.Action)
	}
	return d.saveConfig(r, config.Changes{Lists: map[string][]string{"bot": list}}, slices.Equal(list, was))
}

// saveConfig saves changes that were made on the policy page. none reports that nothing was
// changed.
func (d *Dashboard) saveConfig(r *http.Request, changes config.Changes, none bool) (*reply, error) {
	switch {
	case d.site.Save == nil:
		return d.policyFailed(r, "the server has no configuration file to write to")
	case none:
		return &reply{To: "/policy", Message: done("Nothing to save: these settings are already in use.")}, nil
	}
	if err := d.site.Save(r.Context(), changes); err != nil {
		d.log.Warn("could not save configuration", "err", err)
		return d.policyFailed(r, printable(refusal(err)))
	}
	d.log.Info("configuration saved")
	return &reply{To: "/policy", Message: done("Saved in the configuration file. Bots get the new settings as soon as the site is published again.")}, nil
}

// refusal explains in plain words why a value was refused.
func refusal(err error) string {
	if m, ok := errors.AsType[*config.MemberError](err); ok {
		label := strings.TrimPrefix(m.Member, "policy.")
		return strings.ToUpper(label[:1]) + label[1:] + ": " + m.Err.Error()
	}
	return strings.TrimPrefix(strings.TrimPrefix(plainError(err), "use new configuration: "), "--bot: ")
}

// policyFailed shows the page again, with the typed values and the reason why nothing was saved.
func (d *Dashboard) policyFailed(r *http.Request, why string) (*reply, error) {
	p, err := d.policyPage(r.Context())
	if err != nil {
		return nil, err
	}
	p.Edit.typed(r.PostForm)
	return &reply{Data: p, Status: http.StatusConflict, Message: wrong(fmt.Sprintf("Not saved: %s.", strings.TrimSuffix(why, ".")))}, nil
}
