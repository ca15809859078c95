package agent

import "testing"

func TestRetentionText(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{86_400: "a day", 30 * 86_400: "30 days", 90 * 60: "1h30m0s"} {
		if got := retentionText(seconds); got != want {
			t.Errorf("%v seconds: %q, want %q", seconds, got, want)
		}
	}
}
