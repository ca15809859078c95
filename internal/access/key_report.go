package access

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// KeyReport is the report of `millrace keys --json` for a key.
type KeyReport struct {
	Name    string           `json:"name"`              // name of the key
	Scopes  []millrace.Scope `json:"scopes"`            // scopes of the key
	Created *time.Time       `json:"created,omitempty"` // when it was created
	Expires *time.Time       `json:"expires,omitempty"` // when it expires; absent if never
	Revoked *time.Time       `json:"revoked,omitempty"` // when it was revoked
	Valid   bool             `json:"valid"`             // the key is accepted now
	Key     string           `json:"key,omitempty"`     // the key, only when it is created
}

// ReportKeys returns the reports of keys.
func ReportKeys(keys []store.Key, now time.Time) []KeyReport {
	date := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	reports := []KeyReport{}
	for _, k := range keys {
		reports = append(reports, KeyReport{k.Name, k.Scopes, date(k.Created), date(k.Expires), date(k.Revoked), k.ValidAt(now), ""})
	}
	return reports
}

// WriteKeys writes a table of keys.
func WriteKeys(w io.Writer, keys []KeyReport) {
	if len(keys) == 0 {
		fmt.Fprintln(w, "no keys")
		return
	}
	date := func(t *time.Time) string {
		if t == nil {
			return "never"
		}
		return t.Format("2006-01-02 15:04Z")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tSCOPES\tCREATED\tEXPIRES\tSTATE")
	for _, k := range keys {
		scopes := make([]string, len(k.Scopes))
		for i, r := range k.Scopes {
			scopes[i] = string(r)
		}
		state := "valid"
		switch {
		case k.Revoked != nil:
			state = "revoked " + date(k.Revoked)
		case !k.Valid:
			state = "expired"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", k.Name, strings.Join(scopes, ","), date(k.Created), date(k.Expires), state)
	}
	_ = t.Flush()
}
