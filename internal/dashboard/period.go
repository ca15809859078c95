package dashboard

import (
	"net/http"
	"strconv"
	"time"
)

// period is how far back a page looks.
type period struct {
	Days    int
	From    time.Time // a midnight of UTC
	To      time.Time // the midnight that comes
	Choices []int
}

// defaultDays is how many days a page looks back by default.
const defaultDays = 7

// period reads how far back a request wants to look.
func (d *Dashboard) period(r *http.Request) period {
	l := period{Days: defaultDays, Choices: []int{1, 7, 30, 90}}
	asked, err := strconv.Atoi(r.URL.Query().Get("days"))
	for _, n := range l.Choices {
		if err == nil && n == asked {
			l.Days = n
		}
	}
	l.To = d.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	l.From = l.To.AddDate(0, 0, -l.Days)
	return l
}

// Label names a choice.
func (l period) Label(days int) string {
	if days == 1 {
		return "today"
	}
	return strconv.Itoa(days) + " days"
}
