package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// usageOverview measures the dashboard's overview page and the memory of the server, for two numbers
// of events in the last 30 days.
func (b *bench) usageOverview(ctx context.Context, n int) error {
	var least float64
	for i, events := range []int{n / 100, n} {
		o, err := b.overview(ctx, 1000+i, events)
		if err != nil {
			return err
		}
		b.add(row{
			what: fmt.Sprintf("overview page of the dashboard over %d events, without the browser", events), limit: "300 ms",
			ours:  fmt.Sprintf("%.0f ms (the first %.0f), %.0f ms of processor time", o.median, o.first, o.processor),
			ratio: fmt.Sprintf("%.2f", o.median/300), reach: "below 1", good: o.median < 300,
		})
		r := row{
			what: fmt.Sprintf("memory of the server while that page is requested 20 times, over %d events", events),
			ours: fmt.Sprintf("%.0f MB at most (%.0f before)", o.peak, o.idle),
		}
		if i == 0 {
			least = o.peak
		} else {
			r.limit, r.ratio = fmt.Sprintf("%.0f MB (%d events)", least, n/100), fmt.Sprintf("%.2f", o.peak/least)
			r.reach, r.good = "at most 1.2", o.peak <= 1.2*least
		}
		b.add(r)
	}
	return nil
}

var (
	passwordHash = regexp.MustCompile(`\$argon2id\$[^\s"']+`)
	formField    = regexp.MustCompile(`name="csrf" value="([^"]+)"`)
)

// overviewTimes contains times in ms per page, and resident memory in MB.
type overviewTimes struct {
	median, first, processor float64
	idle, peak               float64
}

// overview serves a site with the given number of pages and n events, logs in, and fetches the
// overview page.
func (b *bench) overview(ctx context.Context, pages, n int) (o overviewTimes, err error) {
	file, err := b.fill(ctx, pages)
	if err != nil {
		return o, err
	}
	v := &visitor{rng: rand.New(rand.NewPCG(4, 4)), now: time.Now().AddDate(0, 0, -visitDays), scale: 1}
	st, err := stores.Open(ctx, file, &store.Options{Now: func() time.Time { return v.now }})
	if err != nil {
		return o, err
	}
	_, err = v.visit(ctx, st.(store.Usage), n)
	if cerr := st.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return o, err
	}
	out, err := exec.CommandContext(ctx, b.binary, "keys", "password").Output()
	if err != nil {
		return o, err
	}
	password, _, _ := strings.Cut(string(out), "\n")
	s, err := b.startServer(ctx, file, "--dashboard", "/owner", "--dashboard-password", passwordHash.FindString(string(out)))
	if err != nil {
		return o, err
	}
	defer s.stop()
	client, err := login(ctx, s.url+"owner/login", password)
	if err != nil {
		return o, err
	}
	time.Sleep(5 * time.Second) // give the server time to clean up the store
	if o.idle, err = residentMB(s.pid); err != nil {
		return o, err
	}
	before, err := processorOf(s.pid)
	if err != nil {
		return o, err
	}
	const times = 20
	var took []float64
	for range times {
		began := time.Now()
		_, body, err := get(ctx, client, s.url+"owner/", identity)
		if err != nil {
			return o, err
		}
		took = append(took, float64(time.Since(began).Microseconds())/1e3)
		if !strings.Contains(string(body), "ExampleBot-1") {
			return o, fmt.Errorf("no bot in the overview: %.300s", body)
		}
	}
	after, err := processorOf(s.pid)
	if err != nil {
		return o, err
	}
	o.first, o.processor = took[0], (after-before).Seconds()*1e3/times
	o.median = median(took)
	o.peak, err = statusMB(s.pid, "VmHWM:")
	return o, err
}

// login returns a client with a session of the dashboard.
func login(ctx context.Context, at, password string) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Jar: jar}
	_, page, err := get(ctx, client, at, identity)
	if err != nil {
		return nil, err
	}
	m := formField.FindSubmatch(page)
	if m == nil {
		return nil, fmt.Errorf("%s has no form", at)
	}
	form := url.Values{"csrf": {string(m[1])}, "password": {password}, "username": {"owner"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", u.Scheme+"://"+u.Host)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("login: %s: %.300s", resp.Status, body)
	}
	return client, err
}
