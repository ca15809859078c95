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

	"github.com/millrace/millrace/store/sqlite"
)

// usageOverview measures the first page of the dashboard of a served site, by
// how many events its store has of the last 30 days, and the memory of the
// process.
func (b *bench) usageOverview(ctx context.Context, n int) error {
	var least float64
	for i, events := range []int{n / 100, n} {
		ms, first, idle, peak, err := b.overview(ctx, 1000+i, events)
		if err != nil {
			return err
		}
		b.add(row{
			what: fmt.Sprintf("overview page of the dashboard over %d events, without the browser", events), limit: "300 ms",
			ours: fmt.Sprintf("%.0f ms (the first %.0f)", ms, first), ratio: fmt.Sprintf("%.2f", ms/300), reach: "below 1", good: ms < 300,
		})
		r := row{
			what: fmt.Sprintf("memory of the server while that page is asked for 20 times, over %d events", events),
			ours: fmt.Sprintf("%.0f MB at most (%.0f before)", idle+peak, idle),
		}
		if i == 0 {
			least = idle + peak
		} else {
			r.limit, r.ratio = fmt.Sprintf("%.0f MB (%d events)", least, n/100), fmt.Sprintf("%.2f", (idle+peak)/least)
			r.reach, r.good = "at most 1.2", idle+peak <= 1.2*least
		}
		b.add(r)
	}
	return nil
}

var (
	passwordHash = regexp.MustCompile(`\$argon2id\$[^\s"']+`)
	formField    = regexp.MustCompile(`name="csrf" value="([^"]+)"`)
)

// overview serves a site of some pages and events, logs in and asks for the
// overview. It gives the median and the first time in ms, and the resident
// memory before and how much more it was at most, in MB.
func (b *bench) overview(ctx context.Context, pages, n int) (ms, first, idle, grown float64, err error) {
	file, err := b.fill(ctx, pages)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	v := &visitor{rng: rand.New(rand.NewPCG(4, 4)), now: time.Now().AddDate(0, 0, -visitDays), scale: 1}
	st, err := sqlite.Open(ctx, file, &sqlite.Options{Now: func() time.Time { return v.now }})
	if err != nil {
		return 0, 0, 0, 0, err
	}
	_, err = v.visit(ctx, st, n)
	if cerr := st.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, 0, 0, 0, err
	}
	out, err := exec.CommandContext(ctx, b.binary, "keys", "password").Output()
	if err != nil {
		return 0, 0, 0, 0, err
	}
	password, _, _ := strings.Cut(string(out), "\n")
	hash := passwordHash.FindString(string(out))
	s, err := b.startServer(ctx, file, "--dashboard", "/owner", "--dashboard-password", hash)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	defer s.stop()
	client, err := login(ctx, s.url+"owner/login", password)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	time.Sleep(2 * time.Second) // until it has tidied
	if idle, err = residentMB(s.pid); err != nil {
		return 0, 0, 0, 0, err
	}
	var took []float64
	for range 20 {
		began := time.Now()
		_, body, err := fetch(ctx, client, s.url+"owner/")
		if err != nil {
			return 0, 0, 0, 0, err
		}
		took = append(took, float64(time.Since(began).Microseconds())/1e3)
		if !strings.Contains(string(body), "ExampleBot-1") {
			return 0, 0, 0, 0, fmt.Errorf("the overview names no bot: %.300s", body)
		}
	}
	peak, err := statusMB(s.pid, "VmHWM:")
	first = took[0]
	return median(took), first, idle, max(peak-idle, 0), err
}

// login gives a client that has a session.
func login(ctx context.Context, at, password string) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Jar: jar}
	_, page, err := fetch(ctx, client, at)
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
