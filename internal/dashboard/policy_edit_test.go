package dashboard

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/config"
)

// The forms save only what was changed, and rules for bots keep their order.
func TestPolicyForms(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	var saved []config.Changes
	o.Save = func(_ context.Context, c config.Changes) error {
		saved = append(saved, c)
		return o.fail
	}
	o.Access = &AccessSettings{BotRules: []BotRule{{"GPTBot", "2/s"}, {"training", "403"}}}
	v := newSurfer(t, newBoard(t, o.SiteOptions, seedTime))
	send := func(path string, form url.Values) int {
		t.Helper()
		form.Set("csrf", tokenInput.FindStringSubmatch(v.get("policy"))[1])
		status, _ := v.read(v.client.PostForm(v.b.url+path, form))
		return status
	}
	policy := url.Values{"purposes.search": {allowed}, "purposes.ai-input": {unset}, "purposes.ai-train": {refused}, "requirements.attribution": {"1"}, "terms": {o.Policy.Terms}, "contact": {o.Policy.Contact}}
	bots := url.Values{"rule-training": {"403"}, "rule-GPTBot": {"2/s"}}
	for name, c := range map[string]struct {
		path  string
		form  url.Values
		set   map[string]string
		lists []string
		want  map[string]any
		none  bool
	}{
		"unchanged policy": {path: "policy/save", form: policy, none: true},
		"policy": {
			path: "policy/save", form: policy, set: map[string]string{"purposes.search": unset, "purposes.ai-train": allowed, "requirements.attribution": "", "terms": "", "contact": "a@b.test", "requirements.link-back": "1"},
			want: map[string]any{"purposes.search": nil, "purposes.ai-train": true, "requirements.attribution": nil, "terms": nil, "contact": "a@b.test", "requirements.link-back": true},
		},
		"unchanged rules for bots": {path: "policy/bots", form: bots, none: true},
		"bots":                     {path: "policy/bots", form: bots, set: map[string]string{"rule-training": "402", "rule-search": "allow"}, lists: []string{"GPTBot=2/s", "training=402", "search=allow"}},
		"no rules":                 {path: "policy/bots", form: bots, set: map[string]string{"rule-training": "", "rule-GPTBot": ""}, lists: []string{}},
		"one more":                 {path: "policy/bots", form: bots, set: map[string]string{"name": " CCBot ", "action": "403"}, lists: []string{"GPTBot=2/s", "training=403", "CCBot=403"}},
	} {
		saved = nil
		form := maps.Clone(c.form)
		for k, value := range c.set {
			form.Set(k, value)
		}
		send(c.path, form)
		if c.none {
			if len(saved) > 0 {
				t.Errorf("%s: saved %+v", name, saved)
			}
			continue
		}
		if len(saved) != 1 || !maps.Equal(saved[0].Policy, c.want) || !slices.Equal(saved[0].Lists["bot"], c.lists) {
			t.Errorf("%s: saved %+v", name, saved)
		}
	}
	// A refused form keeps what was typed, and names the member.
	for _, c := range []struct {
		path string
		err  error
		form url.Values
		want []string
	}{
		{
			"policy/save", &config.MemberError{Position: "millrace.yaml:69:10", Member: "policy.terms", Err: errors.New(`"not a url" is not a URL`)},
			url.Values{"terms": {"not a url"}, "contact": {"typed@b.test"}, "requirements.link-back": {"1"}, "purposes.search": {refused}},
			[]string{`Not saved: Terms: &#34;not a url&#34; is not a URL.<`, `value="not a url"`, `value="typed@b.test"`, `name="requirements.link-back" value="1" checked>`, `<select id="purposes.search" name="purposes.search"><option value="">not stated</option><option value="allowed">yes</option><option value="refused" selected>`},
		},
		{
			"policy/bots", errors.New("use new configuration: --bot: rule for NoSuchBot: unknown bot"),
			url.Values{"name": {"NoSuchBot"}, "action": {"402"}, "rule-search": {"allow"}, "rule-training": {"403"}},
			[]string{"Not saved: rule for NoSuchBot: unknown bot.<", `name="name" value="NoSuchBot"`, `<option value="402" selected>ask for payment (402)</option><option value="403">refuse (403)</option></select></div></div>`, `name="rule-search"><option value="">no rule</option><option value="allow" selected>`},
		},
	} {
		o.fail = c.err
		c.form.Set("csrf", tokenInput.FindStringSubmatch(v.get("policy"))[1])
		status, body := v.read(v.client.PostForm(v.b.url+c.path, c.form))
		if status != http.StatusConflict {
			t.Errorf("%s: %d", c.path, status)
		}
		for _, s := range c.want {
			if !strings.Contains(body, s) {
				t.Errorf("%s: %q is missing in\n%s", c.path, s, body)
			}
		}
	}
}
