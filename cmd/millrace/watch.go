package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/internal/webhook"
	stores "github.com/millrace/millrace/store/all"
)

type watchCommand struct {
	pullCommand
	subscribing
	All               bool          `help:"Pull all sites that sites add has added to --store, including those added later. Any number of programs can share this work."`
	RequestRate       float64       `placeholder:"N" help:"Maximum requests per second of all programs that share the store (default: no limit)."`
	ByteRate          humanize.Size `placeholder:"SIZE" help:"Maximum bytes per second received by all programs that share the store, such as 5MB (default: no limit)."`
	Retention         retentions    `placeholder:"LABEL=DURATION,..." help:"How long the store keeps the changes of the sites with a label, for receivers and export --since, such as news=2160h (default: 720h for all sites)."`
	MinInterval       time.Duration `default:"5m" placeholder:"DURATION" help:"Minimum time between two pulls of a site (default: ${default}). The actual interval depends on how often the site changes."`
	MaxInterval       time.Duration `default:"24h" placeholder:"DURATION" help:"Maximum time between two pulls of a site (default: ${default}). It may be longer if the site requires that, or because the pause after a pull is at least four times as long as the pull."`
	Events            bool          `default:"true" negatable:"" help:"Listen to the event streams of sites, and pull at once after a change (default: yes)."`
	From              string        `enum:"start,now" default:"start" help:"Where a new receiver begins: start sends all pages of the mirror, now sends only changes from now on (${enum})."`
	Content           string        `enum:"none,text,markdown" default:"none" help:"Content that a change includes: ${enum}."`
	Webhook           string        `placeholder:"URL" help:"Post changes to this URL, signed, instead of printing them. If sites add has set a webhook for a site, the changes of the site go there."`
	WebhookSecretFile string        `placeholder:"FILE" help:"File with the secret that signs messages to --webhook and to the webhooks of sites. A second secret in the second line also signs them. Without the flag, the secret is read from MILLRACE_WEBHOOK_SECRET."`
}

// retentions are durations by label as users write them: LABEL=DURATION, separated by commas.
type retentions map[string]time.Duration

// UnmarshalText adds retentions.
func (r *retentions) UnmarshalText(text []byte) error {
	for entry := range strings.SplitSeq(string(text), ",") {
		label, value, _ := strings.Cut(entry, "=")
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Hour || label == "" {
			return fmt.Errorf("%.80q is not a label with a duration of at least 1h; use LABEL=DURATION, such as news=2160h", entry)
		}
		if *r == nil {
			*r = make(retentions)
		}
		(*r)[label] = d
	}
	return nil
}

const (
	leaveTime  = 2 * time.Second // timeout for writing to standard output at the end
	maxPrinted = 1000            // maximum number of changes per printed batch
	maxPosted  = 100             // maximum number of changes per posted batch

	// maxFleetBytes is the default of --max-bytes with --all. It bounds the temporary files of a
	// worker, because a long list may contain sites of any size.
	maxFleetBytes = 1_000_000_000

	longestInterval = 365 * 24 * time.Hour
)

// Run watches until its context ends.
func (c *watchCommand) Run(ctx context.Context, p *process) (err error) {
	p.memory().Limit()
	if err := c.prepare(p); err != nil {
		return err
	}
	secrets, err := c.secrets(p)
	if err != nil {
		return err
	}
	client := c.notificationClient(p).HTTP()
	sender := func(url string) (*webhook.Sender, error) {
		return webhook.New(client, url, secrets, &webhook.Options{Logger: p.log})
	}
	var hook *webhook.Sender // If nil, standard output.
	if c.Webhook != "" {
		if hook, err = sender(c.Webhook); err != nil {
			return usageError("--webhook: " + err.Error())
		}
	}
	if c.All {
		if err := p.exists(ctx, c.Store); errors.Is(err, millrace.ErrNotFound) { // open reports other errors
			return fmt.Errorf("%w; add sites with millrace sites add URL --store %s first", err, stores.Name(c.Store))
		}
	}
	// With several sites, log progress instead of showing bars.
	st, a, err := c.open(ctx, p, c.agentOptions(&process{
		lookup: p.lookup, stderr: terminal.New(p.stderr, p.lookup), commonFlags: p.commonFlags, log: p.log, dial: p.dial,
	}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if c.All && secrets == nil {
		stats, err := st.Fleet().Stats(ctx, "")
		if err != nil {
			return err
		}
		if stats.Webhooks > 0 {
			return usageError(fmt.Sprintf("--webhook-secret-file: no secret to sign webhook messages (%s with a webhook); %s", humanize.Quantity(int64(stats.Webhooks), "site"), secretAdvice))
		}
	}
	o := &agent.WatchOptions{
		MinInterval: c.MinInterval, MaxInterval: c.MaxInterval, NoListen: !c.Events, FromNow: c.From == "now",
		Receiver: "standard output", MaxChanges: maxPrinted, RequestRate: c.RequestRate, ByteRate: float64(c.ByteRate), Retention: c.Retention,
		Webhook: func(ctx context.Context, url string, e *agent.Event) error {
			hook, err := sender(url)
			if err != nil {
				return err
			}
			return post(ctx, hook, e)
		},
	}
	if c.All {
		c.URL = nil
	}
	if hook != nil {
		o.Receiver, o.MaxChanges = "webhook "+hook.Key(), maxPosted
	}
	switch c.Content {
	case "text":
		o.Content = (*millrace.Page).Text
	case "markdown":
		o.Content = (*millrace.Page).Markdown
	}
	var hubs net.Listener
	if o.Subscriber, hubs, err = c.subscriber(ctx, a); err != nil {
		return err
	}
	// Report a closed standard output as an error.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	ctx, fail := context.WithCancelCause(ctx)
	var answering sync.WaitGroup
	if hubs != nil {
		answering.Go(func() {
			if err := answerHubs(ctx, p, o.Subscriber, hubs); err != nil {
				fail(err)
			}
		})
	}
	err = c.deliver(ctx, p, hook, a.Watch(ctx, c.URL, o))
	fail(nil)
	answering.Wait()
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// deliver prints or posts events.
func (c *watchCommand) deliver(ctx context.Context, p *process, hook *webhook.Sender, events iter.Seq2[*agent.Event, error]) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if hook == nil {
			err = p.write(ctx, bytes.Join(e.Lines, nil))
		} else {
			err = post(ctx, hook, e)
		}
		if err == nil {
			continue
		}
		e.Refuse(err)
		if ctx.Err() == nil && (hook == nil || !errors.Is(err, millrace.ErrTooLarge) && !errors.Is(err, millrace.ErrNotFound)) {
			return err
		}
	}
	return nil
}

// post posts an event to a webhook.
func post(ctx context.Context, hook *webhook.Sender, e *agent.Event) error {
	body, err := e.Message()
	if err != nil {
		return err
	}
	return hook.Send(ctx, body)
}

// write writes to standard output. After the context has ended, it waits for at most
// leaveTime.
func (p *process) write(ctx context.Context, b []byte) error {
	written := make(chan error, 1)
	go func() {
		_, err := p.stdout.Write(b)
		written <- err
	}()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-written:
		return err
	case <-time.After(leaveTime):
		return ctx.Err()
	}
}

// prepare checks the flags.
func (c *watchCommand) prepare(p *process) error {
	switch {
	case c.All && len(c.URL) > 0:
		return usageError("--all pulls the sites of the store; omit the URLs, or add them with millrace sites add")
	case c.All && c.Store == "":
		return usageError("--all: name the store of the sites with --store")
	case !c.All && len(c.URL) == 0:
		return usageError("no site selected; name sites, or use --all with --store for those of millrace sites add")
	case !(c.RequestRate >= 0 && c.RequestRate < math.Inf(1)):
		return usageError("--request-rate must be a number from 0; omit it for no limit")
	case c.MinInterval < time.Second:
		return usageError(fmt.Sprintf("--min-interval %s: must be at least 1s", c.MinInterval))
	case c.MaxInterval > longestInterval:
		return usageError(fmt.Sprintf("--max-interval %s: must be at most a year", c.MaxInterval))
	case c.MaxInterval < c.MinInterval:
		return usageError(fmt.Sprintf("--max-interval %s is less than --min-interval %s", c.MaxInterval, c.MinInterval))
	}
	if c.Webhook == "" && c.Store == "" && c.WebhookSecretFile != "" {
		return usageError("--webhook-secret-file: only valid with --webhook, or with --store for the webhooks of sites")
	}
	if c.All && c.MaxBytes == 0 {
		c.MaxBytes = maxFleetBytes
	}
	return c.pullCommand.prepare(p)
}

// secretAdvice explains how to create a secret.
const secretAdvice = `create one with: (printf whsec_; openssl rand -base64 32) > webhook.secret; give it to the receiver, and to --webhook-secret-file`

// secrets returns the secrets that sign messages, or nil if none is configured.
func (c *watchCommand) secrets(p *process) ([]webhook.Secret, error) {
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
	switch {
	case strings.TrimSpace(text) != "":
	case c.Webhook == "" && c.WebhookSecretFile == "":
		return nil, nil
	default:
		return nil, usageError(fmt.Sprintf("--webhook: no secret for signatures in %s; %s", from, secretAdvice))
	}
	secrets, err := webhook.ParseSecrets(text)
	if err != nil {
		return nil, usageError(fmt.Sprintf("%s: %v; %s", from, err, secretAdvice))
	}
	return secrets, nil
}
