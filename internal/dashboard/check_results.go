package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
)

// Limits of one check of one protocol.
const (
	checkTime     = 2 * time.Minute
	checkBody     = 16 << 20 // maximum bytes of one body, and half of those of all different bodies together
	checkRequests = 500
	checkFindings = 10 // maximum number of findings per rule
)

var errSlow = fmt.Errorf("check took more than %s", checkTime)

// checkResult is the result of one check of one protocol.
type checkResult struct {
	At       time.Time // start time
	Took     time.Duration
	Config   int           // number of the configuration, from CheckResults
	Edition  uint64        // sequence number of the edition
	Report   *check.Report // nil: the check failed
	Result   *check.Result // result of the protocol; nil: the check failed
	Err      error         // why the check failed
	Requests int
	// Unreached is the reason why the check ran inside this process instead of at the public
	// address. If nil, it ran at the public address.
	Unreached error
}

// CheckResults checks the protocols of a site, one at a time, and keeps the last result of each in
// memory. It can outlive a dashboard that a reload replaces.
type CheckResults struct {
	mu      sync.Mutex
	turn    chan struct{} // contains a value while a check runs
	last    map[string]*checkResult
	running map[string]time.Time // start of running and waiting checks
	configs int                  // number of configurations so far
}

// NewCheckResults returns an empty CheckResults.
func NewCheckResults() *CheckResults {
	return &CheckResults{turn: make(chan struct{}, 1), last: make(map[string]*checkResult), running: make(map[string]time.Time)}
}

// configured increments the number of configurations and returns it.
func (v *CheckResults) configured() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.configs++
	return v.configs
}

// of returns the last result of a protocol, or nil, and the start of a running check, or the zero
// time.
func (v *CheckResults) of(proto string) (*checkResult, time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last[proto], v.running[proto]
}

// run checks protocols in the background, one after the other, except those with a running or
// waiting check. It closes the channel after the last check. Checks continue if the request is
// canceled.
func (v *CheckResults) run(ctx context.Context, config int, s *SiteOptions, protocols []protocol.Protocol) <-chan struct{} {
	ctx = context.WithoutCancel(ctx)
	var mine []protocol.Protocol
	v.mu.Lock()
	for _, proto := range protocols {
		if v.running[proto.Name].IsZero() {
			v.running[proto.Name] = time.Now()
			mine = append(mine, proto)
		}
	}
	v.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, proto := range mine {
			v.turn <- struct{}{}
			is := runCheck(ctx, s, proto)
			is.Config = config
			<-v.turn
			v.mu.Lock()
			v.last[proto.Name] = is
			delete(v.running, proto.Name)
			v.mu.Unlock()
		}
	}()
	return done
}

// runCheck checks one protocol at the public address. If that address cannot be reached, it checks
// inside this process.
func runCheck(ctx context.Context, s *SiteOptions, proto protocol.Protocol) (is *checkResult) {
	is = &checkResult{At: time.Now()}
	defer func() {
		if cause := recover(); cause != nil {
			is.Err = fmt.Errorf("panic: %v", cause)
		}
		is.Took = time.Since(is.At)
	}()
	ed := s.Server.Current()
	if ed == nil {
		is.Err = errors.New("nothing is published yet")
		return is
	}
	is.Edition = ed.View.Site().Seq
	ctx, cancel := context.WithTimeoutCause(ctx, checkTime, errSlow)
	defer cancel()
	key := ""
	if s.Server.Guarded() {
		key = s.Key()
	}
	o := &check.TargetOptions{MaxRequests: checkRequests, MaxBody: checkBody, Decode: fetch.Decode, Keyed: key != ""}
	client, release, err := s.public(ctx, key)
	defer release()
	if is.Unreached = err; err != nil {
		in := newLoop(s.Gateway(), key, s.EndpointBase)
		defer in.Close()
		client = in.client()
		if s.ExternalPages {
			o.OnOtherServer = func(pageURL string) bool {
				_, err := ed.View.Page(ctx, millrace.Ref{URL: pageURL})
				return err == nil
			}
		}
	}
	target, err := check.NewTarget(s.EndpointBase, client, o)
	if err != nil {
		is.Err = err
		return is
	}
	suites := []check.Suite{proto.Suite()}
	is.Report, is.Err = check.Run(ctx, target, suites, &check.RunOptions{MaxFindings: checkFindings})
	is.Requests = target.Requests()
	if is.Err == nil {
		is.Result = is.Report.Protocols[proto.Name]
	}
	return is
}

// public returns a client for the public address, or the reason why it cannot be used. The caller
// must call release after the last request.
func (s *SiteOptions) public(ctx context.Context, key string) (client *http.Client, release func(), err error) {
	release = func() {}
	if s.Public == nil {
		return nil, release, errors.New("this server does not send requests to its public address")
	}
	if u, err := url.Parse(s.EndpointBase); err != nil || key != "" && u.Scheme != "https" && !fetch.IsLoopback(u.Hostname()) {
		return nil, release, errors.New("content needs a key, and this address is not encrypted")
	}
	client = fetch.New(s.Public).HTTP()
	own := newOwnRequests(client.Transport, key, s.Base, s.EndpointBase)
	client.Transport = own
	own.mark, release = s.OwnRequests()
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, s.EndpointBase, http.NoBody)
	if err != nil {
		return nil, release, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, release, err
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusInternalServerError {
		return nil, release, fmt.Errorf("HEAD %s: %s", s.EndpointBase, resp.Status)
	}
	return client, release, nil
}

// reachTime is the time limit of the request that tests whether the public address can be reached.
const reachTime = 15 * time.Second

// Times of the scheduled checks.
const (
	firstCheck = time.Minute // time from the first edition, or from a reload, to the first check
	recheck    = 6 * time.Hour
)

// Run checks all protocols on a schedule until the context ends.
func (d *Dashboard) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-d.site.Server.Ready():
	}
	for wait := firstCheck; ; wait = recheck {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		<-d.checks.run(ctx, d.config, d.site, d.site.Protocols)
	}
}
