package agent

import (
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/robots"
	"github.com/millrace/millrace/protocol"
)

// robotsTerms gives what a robots.txt says about the use of the content in the
// group for us: by Content-Signal and Content-Usage, of the whole site, and of
// purposes of which no other document speaks: those are newer, since a robots.txt
// counts for a day, and say more. What is said of a part of the site is in the
// reports of discover alone.
func robotsTerms(file *fetch.Robots, root *url.URL, others []protocol.Terms) (t protocol.Terms, said bool) {
	var lists []string
	for _, rec := range file.Records() {
		if rec.Name == "content-signal" || rec.Name == "content-usage" && !strings.HasPrefix(rec.Value, "/") {
			lists = append(lists, rec.Value)
		}
	}
	purposes := robots.Preferences(lists...)
	for _, o := range others {
		for purpose := range o.Policy.Purposes {
			delete(purposes, purpose)
		}
	}
	t = protocol.Terms{
		URL: root.Scheme + "://" + root.Host + "/robots.txt", Policy: &millrace.Policy{Purposes: purposes},
		Names: protocol.MemberNames{Purposes: make(map[millrace.Purpose]string)},
	}
	for purpose := range purposes {
		t.Names.Purposes[purpose] = string(purpose) + " of Content-Signal or Content-Usage"
	}
	return t, len(purposes) > 0
}
