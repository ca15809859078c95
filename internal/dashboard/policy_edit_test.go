package dashboard

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
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
		"policy as it is": {path: "policy/save", form: policy, none: true},
		"policy": {
			path: "policy/save", form: policy, set: map[string]string{"purposes.search": unset, "purposes.ai-train": allowed, "requirements.attribution": "", "terms": "", "contact": "a@b.test", "requirements.link-back": "1"},
			want: map[string]any{"purposes.search": nil, "purposes.ai-train": true, "requirements.attribution": nil, "terms": nil, "contact": "a@b.test", "requirements.link-back": true},
		},
		"bots as they are": {path: "policy/bots", form: bots, none: true},
		"bots":             {path: "policy/bots", form: bots, set: map[string]string{"rule-training": "402", "rule-search": "allow"}, lists: []string{"GPTBot=2/s", "training=402", "search=allow"}},
		"no rules":         {path: "policy/bots", form: bots, set: map[string]string{"rule-training": "", "rule-GPTBot": ""}, lists: []string{}},
		"one more":         {path: "policy/bots", form: bots, set: map[string]string{"name": " CCBot ", "action": "403"}, lists: []string{"GPTBot=2/s", "training=403", "CCBot=403"}},
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
	o.fail = context.DeadlineExceeded
	if status := send("policy/bots", url.Values{"name": {"CCBot"}, "action": {"403"}}); status != http.StatusConflict {
		t.Errorf("a failed save: %d", status)
	}
}
