package dashboard

import (
	"net/http"
	"strconv"
	"time"
)

// period is the range of days that a page covers.
type period struct {
	Days    int
	From    time.Time // a midnight in UTC
	To      time.Time // the midnight after the last day
	Choices []int
}

// defaultDays is the default number of days.
const defaultDays = 7

// period reads the number of days of a request.
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

// Label returns the text of the choice for a number of days, such as "30 days".
func (l period) Label(days int) string {
	if days == 1 {
		return "today"
	}
	return strconv.Itoa(days) + " days"
}
