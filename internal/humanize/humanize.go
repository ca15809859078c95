// Package humanize formats numbers for people.
package humanize

import (
	"fmt"
	"math"
	"strconv"
)

// Quantity formats a count with its noun, such as "1 request" and "2 requests".
func Quantity(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Bytes formats a number of bytes, such as "1.2 MB".
func Bytes(n int64) string {
	if n < 0 {
		return "-" + Bytes(-n)
	}
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	return scaled(float64(n), []unit{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}})
}

// Count formats a large count, such as "1.2 million".
func Count(n float64) string {
	if math.Abs(n) < 1e4 {
		return fmt.Sprintf("%.0f", n)
	}
	return scaled(n, []unit{{1e9, "billion"}, {1e6, "million"}, {1e3, "thousand"}})
}

// Energy formats an energy, such as "5.1 mWh".
func Energy(kwh float64) string {
	if math.Abs(kwh) < 1e-6 {
		return fmt.Sprintf("%.2f mWh", kwh/1e-6)
	}
	return scaled(kwh, []unit{{1, "kWh"}, {1e-3, "Wh"}, {1e-6, "mWh"}})
}

// Rate formats a rate in parentheses after a space, such as " (98.7 %)". It returns "" for nil.
func Rate(r *float64) string {
	if r == nil {
		return ""
	}
	return " (" + strconv.FormatFloat(math.Round(*r*1000)/10, 'f', -1, 64) + " %)"
}

type unit struct {
	size float64
	name string
}

// scaled formats n in the largest unit that is not larger than n.
func scaled(n float64, units []unit) string {
	for _, u := range units {
		if math.Abs(n) >= u.size {
			return fmt.Sprintf("%.1f %s", n/u.size, u.name)
		}
	}
	return fmt.Sprint(n)
}
