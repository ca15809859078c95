package scp

import (
	"context"
	"time"

	"github.com/millrace/millrace"
)

// Update frequencies of a sitemap (Appendix A).
const (
	hourly  = "hourly"
	daily   = "daily"
	weekly  = "weekly"
	monthly = "monthly"
)

// period is one interval of an update frequency, in UTC. Weeks start on Monday.
type period struct {
	frequency  string
	start, end time.Time
}

// periodOf returns the period that contains t.
func periodOf(frequency string, t time.Time) period {
	t = t.UTC()
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	switch frequency {
	case hourly:
		start := t.Truncate(time.Hour)
		return period{frequency, start, start.Add(time.Hour)}
	case weekly:
		start := day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
		return period{frequency, start, start.AddDate(0, 0, 7)}
	case monthly:
		start := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
		return period{frequency, start, start.AddDate(0, 1, 0)}
	}
	return period{daily, day, day.AddDate(0, 0, 1)}
}

func (p period) before() period { return periodOf(p.frequency, p.start.Add(-time.Second)) }
func (p period) after() period  { return periodOf(p.frequency, p.end) }

// name returns the period attribute of a delta.
func (p period) name() string {
	switch p.frequency {
	case hourly:
		return p.start.Format("2006-01-02T15")
	case monthly:
		return p.start.Format("2006-01")
	}
	return p.start.Format(time.DateOnly)
}

// cacheAge returns the time for which a snapshot may be cached, in seconds. It is at least the
// period, and longer than the time for a delta (Caching Directives).
func (p period) cacheAge() int {
	switch p.frequency {
	case weekly:
		return 7 * 86400
	case monthly:
		return 31 * 86400
	}
	return 86400
}

// updateFrequency returns the update frequency according to the log: hourly if the last day has at
// least 24 changes, daily if it has fewer, weekly if only the last week has changes, else monthly.
// If the log is shorter than a week, the frequency is daily.
func updateFrequency(ctx context.Context, v millrace.View, now time.Time) (string, error) {
	seq := v.Site().Seq
	// The frequency in the sitemap must change at most once an hour.
	now = now.Truncate(time.Hour)
	day, err := v.SeqAt(ctx, now.AddDate(0, 0, -1))
	if err != nil {
		return "", err
	}
	week, err := v.SeqAt(ctx, now.AddDate(0, 0, -7))
	if err != nil {
		return "", err
	}
	switch {
	case week == 0:
		return daily, nil
	case seq-day >= 24:
		return hourly, nil
	case seq > day:
		return daily, nil
	case seq > week:
		return weekly, nil
	}
	return monthly, nil
}
