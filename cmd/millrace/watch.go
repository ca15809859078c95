package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/store"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/internal/schedule"
	"github.com/millrace/millrace/internal/webhook"
	"github.com/millrace/millrace/protocol"
)

type watchCommand struct {
	pullCommand
	subscribing
	MinInterval       time.Duration `default:"5m" placeholder:"DURATION" help:"Least time between two pulls of a site (default: ${default}). How long it is for each site is learned by how often it changes."`
	MaxInterval       time.Duration `default:"24h" placeholder:"DURATION" help:"Longest time between two pulls of a site (default: ${default})."`
	Events            bool          `default:"true" negatable:"" help:"Listen to the events of sites that have them, to pull when something has changed (default: yes)."`
	From              string        `enum:"start,now" default:"start" help:"What a receiver is told that has not been told anything yet: all that the mirror holds, or what changes from now on (${enum})."`
	Content           string        `enum:"none,text,markdown" default:"none" help:"What is told of a page beside its title and dates: ${enum}."`
	Webhook           string        `placeholder:"URL" help:"Post changes there, signed, in place of printing them."`
	WebhookSecretFile string        `placeholder:"FILE" help:"File with the secret that signs; a second line with a second one signs too. Without it the secret is in the environment, as MILLRACE_WEBHOOK_SECRET."`
}

const (
	leaveTime    = 2 * time.Second // for a receiver that takes nothing, at the end
	listenAgain  = 24 * time.Hour  // after a site was found to have no events
	webhookLimit = 30 * time.Second

	longestInterval = 365 * 24 * time.Hour
)

// Run watches until its context ends.
func (c *watchCommand) Run(ctx context.Context, p *process) (err error) {
	p.start(&c.common)
	p.limitMemory()
	ways, err := c.prepare(p)
	if err != nil {
		return err
	}
	w := &watching{c: c, process: p, ways: ways, now: time.Now}
	w.rules = schedule.Rules{Min: c.MinInterval, Max: c.MaxInterval}
	// Several sites at once make no bars, but lines in the log.
	w.puller = &process{
		lookup: p.lookup, stdin: p.stdin, stdout: p.stdout, stderr: struct{ io.Writer }{p.stderr},
		common: p.common, log: p.log, policy: p.policy, dial: p.dial,
	}
	if w.hook, err = c.sender(p); err != nil {
		return err
	}
	path := c.Store
	if path == "" {
		root, err := siteRoot(c.URL[0])
		if err == nil {
			path, err = p.storePath(root)
		}
		if err != nil {
			return err
		}
	}
	if w.store, err = p.openStore(ctx, path); err != nil {
		return err
	}
	if w.agent, err = agent.New(w.store, c.agentOptions(w.puller)); err != nil {
		return errors.Join(err, w.store.Close())
	}
	if w.subscriber, w.hubs, err = c.subscriber(ctx, p); err != nil {
		return errors.Join(err, w.store.Close())
	}
	// A reader of standard output that goes away is an error like any other.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	err = w.run(ctx)
	return errors.Join(err, w.store.Close())
}

// prepare checks the flags, and gives the protocols to pull by.
func (c *watchCommand) prepare(p *process) ([]protocol.Protocol, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	switch {
	case c.MinInterval < time.Second:
		return nil, usageError(fmt.Sprintf("--min-interval %s: a second is the least", c.MinInterval))
	case c.MaxInterval > longestInterval:
		return nil, usageError(fmt.Sprintf("--max-interval %s: a year is the most", c.MaxInterval))
	case c.MaxInterval < c.MinInterval:
		return nil, usageError(fmt.Sprintf("--max-interval %s is less than --min-interval %s", c.MaxInterval, c.MinInterval))
	}
	if c.Webhook == "" && c.WebhookSecretFile != "" {
		return nil, usageError("--webhook-secret-file: there is no --webhook URL to sign for")
	}
	if err := c.loadKey(p); err != nil || c.Via == webCrawl {
		return nil, err
	}
	return rooms(c.Via, webCrawl)
}

// secretAdvice says how to come by a secret.
const secretAdvice = `make one with: (printf whsec_; openssl rand -base64 32) > webhook.secret; give it to the receiver, and to --webhook-secret-file`

// sender gives what posts to the webhook, nil if there is none.
func (c *watchCommand) sender(p *process) (*webhook.Sender, error) {
	if c.Webhook == "" {
		return nil, nil
	}
	from := "MILLRACE_WEBHOOK_SECRET"
	text, _ := p.lookup(from)
	if c.WebhookSecretFile != "" {
		from = "--webhook-secret-file " + c.WebhookSecretFile
		b, err := readStart(c.WebhookSecretFile, maxKeyFile)
		if err != nil {
			return nil, usageError("--webhook-secret-file: " + err.Error())
		}
		text = string(b)
	}
	if strings.TrimSpace(text) == "" {
		return nil, usageError(fmt.Sprintf("--webhook: there is no secret to sign with in %s; %s", from, secretAdvice))
	}
	secrets, err := webhook.ParseSecrets(text)
	if err != nil {
		return nil, usageError(fmt.Sprintf("%s: %v; %s", from, err, secretAdvice))
	}
	// It has no log of its own, since the URL may be a secret as well.
	client := fetch.New(&fetch.Options{
		AllowPrivate: c.AllowPrivate, UserAgent: c.UserAgent, Contact: c.Contact, IgnoreRobots: true, Delay: -1, Timeout: webhookLimit, Dial: p.dial,
	})
	hook, err := webhook.New(client.HTTP(), c.Webhook, secrets, &webhook.Options{Logger: p.log})
	if err != nil {
		return nil, usageError("--webhook: " + err.Error())
	}
	return hook, nil
}

// watching is one run of the command.
type watching struct {
	c       *watchCommand
	process *process
	puller  *process // what pulls have of the process
	store   store.Store
	agent   *agent.Agent
	ways    []protocol.Protocol
	rules   schedule.Rules
	hook    *webhook.Sender // nil: changes are printed
	now     func() time.Time

	subscriber *push.Subscriber // nil: nobody is subscribed to
	hubs       net.Listener     // for what they call back

	tell  *telling
	slots chan struct{}
	mu    sync.Mutex
	hosts map[string]chan struct{} // each taken by who pulls from it
}

// run watches every site, and tells, until the context ends or nothing can be
// told any more.
func (w *watching) run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	w.slots, w.hosts = make(chan struct{}, w.c.Parallel), make(map[string]chan struct{})
	w.tell = newTelling(w)
	var sites []*watchedSite
	for _, u := range w.c.URL {
		s, err := w.open(ctx, u)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(sites, func(t *watchedSite) bool { return t.folder == s.folder }) {
			sites = append(sites, s)
		}
	}
	w.process.log.Info("watching", "sites", len(sites))
	told := make(chan struct{})
	go func() {
		defer close(told)
		if err := w.tell.run(ctx); err != nil && ctx.Err() == nil {
			fail(err)
		}
	}()
	var tasks sync.WaitGroup
	if w.subscriber != nil {
		tasks.Go(func() {
			if err := answerHubs(ctx, w.process, w.subscriber, w.hubs); err != nil && ctx.Err() == nil {
				fail(err)
			}
		})
	}
	for _, s := range sites {
		tasks.Go(func() { w.watch(ctx, s) })
	}
	tasks.Go(func() { w.upkeep(ctx, sites) })
	tasks.Wait()
	select { // who takes nothing is not waited for: he is told again
	case <-told:
	case <-time.After(leaveTime):
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// turn waits until a site may be pulled: not two at once from one host, and not
// too many. done gives the turn back.
func (w *watching) turn(ctx context.Context, root string) (done func(), err error) {
	u, err := url.Parse(root)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	w.mu.Lock()
	host, ok := w.hosts[u.Hostname()]
	if !ok {
		host = make(chan struct{}, 1)
		w.hosts[u.Hostname()] = host
	}
	w.mu.Unlock()
	for _, place := range []chan struct{}{host, w.slots} {
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
			if place == w.slots {
				<-host
			}
			return nil, ctx.Err()
		}
	}
	return func() { <-w.slots; <-host }, nil
}
