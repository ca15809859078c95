package dashboard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
)

// Bounds of one check of one protocol, which is made while the site is at work.
const (
	checkTime     = 30 * time.Second
	checkBody     = 16 << 20 // bytes; all bodies together, eight times that
	checkRequests = 500
	checkFindings = 10 // of one rule
)

var errSlow = fmt.Errorf("the check has taken more than %s", checkTime)

// checkResult is what the checker has said of one protocol.
type checkResult struct {
	At       time.Time // when it began
	Took     time.Duration
	Config   int           // which configuration was in use, counted by Verdicts
	Edition  uint64        // sequence number of what was published then
	Report   *check.Report // nil: it could not look
	Result   *check.Result // of the protocol; nil: it could not look
	Err      error         // why it could not
	Requests int
}

// CheckResults checks the protocols of a site, one at a time, and remembers the last
// verdict of each. They are kept in memory alone, and outlive a dashboard that a
// new configuration replaces.
type CheckResults struct {
	mu      sync.Mutex
	turn    chan struct{} // held while checking
	last    map[string]*checkResult
	running map[string]time.Time // since when, or since when it waits
	configs int                  // dashboards that have had them
}

// NewCheckResults returns an empty Verdicts.
func NewCheckResults() *CheckResults {
	return &CheckResults{turn: make(chan struct{}, 1), last: make(map[string]*checkResult), running: make(map[string]time.Time)}
}

// configured counts one more configuration, and returns its number.
func (v *CheckResults) configured() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.configs++
	return v.configs
}

// of returns the last verdict of a protocol, or nil if none, and since when
// another is being made, zero if none is.
func (v *CheckResults) of(proto string) (*checkResult, time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last[proto], v.running[proto]
}

// run has protocols checked, one after the other, by the configuration that is in
// use, but for those that are being checked already. The channel is closed when
// all checks have ended. They continue when the request that started them is
// gone.
func (v *CheckResults) run(ctx context.Context, config int, s *Site, protocols []protocol.Protocol) <-chan struct{} {
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

// runCheck checks one protocol of the site as it is published now, without the
// network.
func runCheck(ctx context.Context, s *Site, proto protocol.Protocol) (is *checkResult) {
	is = &checkResult{At: time.Now()}
	defer func() {
		if cause := recover(); cause != nil {
			is.Err = fmt.Errorf("panic: %v", cause)
		}
		is.Took = time.Since(is.At)
	}()
	ed := s.Press.Current()
	if ed == nil {
		is.Err = errors.New("nothing is published yet")
		return is
	}
	is.Edition = ed.View.Site().Seq
	ctx, cancel := context.WithTimeoutCause(ctx, checkTime, errSlow)
	defer cancel()
	key := ""
	if s.Press.Guarded() {
		key = s.Key()
	}
	in := newLoop(s.Gateway(), key, s.Docs)
	defer in.Close()
	o := &check.TargetOptions{MaxRequests: checkRequests, MaxBody: checkBody, Decode: fetch.Decode, Keyed: key != ""}
	if s.ExternalPages {
		o.Beside = func(pageURL string) bool {
			_, err := ed.View.Page(ctx, millrace.Ref{URL: pageURL})
			return err == nil
		}
	}
	target, err := check.NewTarget(s.Docs, in.client(), o)
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
