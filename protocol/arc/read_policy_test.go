package arc

import (
	"errors"
	"net/http"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

var _ protocol.PolicyReader = (*reader)(nil)

// The policy option receives the policy before any page and can end the read. If the policy is
// invalid, the read fails.
func TestPolicyOption(t *testing.T) {
	no := errors.New("not under these terms")
	for name, c := range map[string]struct {
		policy string // "" = none
		status int
		refuse error
		want   error // nil = the list is read
		calls  int
	}{
		"none":        {"", http.StatusNotFound, no, nil, 0},
		"closed":      {"", http.StatusForbidden, no, nil, 0},
		"accepted":    {`{"purposes":{"ai-train":false}}`, 0, nil, nil, 1},
		"refused":     {`{"purposes":{"ai-train":false}}`, 0, no, no, 1},
		"broken":      {`{"purposes":{"ai-train":1}}`, 0, nil, nil, 0},
		"impossible":  {`{"purposes":{"anything":true}}`, 0, nil, nil, 0},
		"large":       {`{"access":"` + string(make([]byte, policy.MaxSize)) + `"}`, 0, nil, nil, 0},
		"unavailable": {"", http.StatusInternalServerError, nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == pathPolicy && c.status != 0:
					w.WriteHeader(c.status)
				case r.URL.Path == pathPolicy:
					_, _ = w.Write([]byte(c.policy))
				case r.URL.Path == pathList:
					g := &generated{n: 3, origin: "https://example.com", snapshot: someSnapshot}
					for b := make([]byte, 1024); ; {
						n, err := g.Read(b)
						if err != nil {
							return
						}
						_, _ = w.Write(b[:n])
					}
				default:
					http.NotFound(w, r)
				}
			})
			calls := 0
			o := &ReaderOptions{ReaderOptions: protocol.ReaderOptions{Policy: func(terms protocol.Terms) error {
				calls++
				if terms.URL != "https://example.com"+pathPolicy || terms.Policy.Purposes[millrace.AITrain] || terms.Names.Purposes[millrace.AITrain] != "purposes.ai-train" {
					t.Errorf("%+v", terms)
				}
				return c.refuse
			}}}
			puts, _, marks, err := read(t, NewReader(&http.Client{Transport: protocoltest.Answer(h)}, "https://example.com/", o))
			if !errors.Is(err, c.want) || (c.want == nil) != (puts == 3 && marks == 1) || calls != c.calls {
				t.Errorf("%d pages, %d calls of the option, %v", puts, calls, err)
			}
		})
	}
}
