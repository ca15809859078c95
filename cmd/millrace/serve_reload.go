package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/conns"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/serving"
)

// running is a running server that can reload its configuration. A valid configuration replaces the
// old one once its first edition is ready. An invalid configuration changes nothing.
type running struct {
	*serving.Server
	now     *service // the current service
	next    *service // replaces now when it is ready
	settled <-chan error
	at      net.Addr
	certs   *conns.Certificates      // If nil, there is no TLS.
	ready   func(now *service) error // called after the first edition is published
}

// hangupSignals returns a channel of the signals to reload the configuration, or nil. It also
// receives signals that arrive before the server runs, which would otherwise end the process.
func (p *process) hangupSignals() (signals <-chan os.Signal, stop func()) {
	if p.reloadSignals == nil || p.again == nil {
		return nil, func() {}
	}
	return p.reloadSignals()
}

// until serves until the context ends or asked is closed.
func (r *running) until(ctx context.Context, ln net.Listener, asked <-chan os.Signal) error {
	p := r.now.p
	secure(p, r.now.endpointBase, r.certs)
	ctx, cancel := context.WithCancel(ctx)
	r.Server = serving.NewServer(ctx, r.now.Service, &gateway.ServerOptions{TLS: r.certs, Logger: p.log})
	served := make(chan error, 1)
	go func() {
		served <- r.Run(ctx, ln)
		close(served)
	}()
	var watching sync.WaitGroup
	if r.certs != nil {
		watching.Go(func() { r.certs.Run(ctx) })
	}
	p.notify("READY=1", "STATUS=listening on "+ln.Addr().String())
	err := r.watch(ctx, served, asked)
	p.notify("STOPPING=1")
	cancel()
	err = cmp.Or(err, <-served)
	watching.Wait()
	return errors.Join(err, r.Close())
}

// watch handles events until the context ends or something fails.
func (r *running) watch(ctx context.Context, served <-chan error, asked <-chan os.Signal) error {
	logged := false
	for {
		var first <-chan struct{}
		if !logged {
			first = r.now.Server.Ready()
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return err
		case err := <-r.now.Failed():
			return err
		case <-first:
			logged = true
			r.now.warnIfHidden(ctx)
			r.now.p.notify("STATUS=serving " + r.now.endpointBase)
			if err := r.ready(r.now); err != nil {
				return err
			}
		case _, more := <-asked:
			if !more {
				return nil
			}
			_ = r.reload(ctx) // reload logs its errors
		case done := <-r.now.p.reloads:
			done <- r.reload(ctx)
		case err := <-r.settled:
			r.settled = nil
			if err != nil {
				r.now.p.log.Error("reload failed; keeping previous configuration", "err", err)
				break
			}
			r.now = r.next
			r.now.p.log.Info("new configuration is in use", "url", r.now.endpointBase)
			r.now.warnIfHidden(ctx)
		}
	}
}

// reload reloads the configuration. It logs errors.
func (r *running) reload(ctx context.Context) error {
	log := r.now.p.log
	r.now.p.notify("RELOADING=1")
	defer r.now.p.notify("READY=1")
	s, err := r.renew(ctx)
	if err != nil {
		if ctx.Err() == nil {
			log.Error("reload failed; keeping previous configuration", "err", err)
		}
		return err
	}
	log.Info("configuration reloaded")
	r.next, r.settled = s, r.Replace(ctx, s.Service)
	return nil
}

// renew creates a service from the current configuration.
func (r *running) renew(ctx context.Context) (*service, error) {
	old := r.now
	line, conf, err := old.p.again()
	if err != nil {
		return nil, err
	}
	c := &line.Serve
	if err := old.c.checkImmutable(c); err != nil {
		return nil, err
	}
	p := &process{
		lookup: old.p.lookup, stdin: old.p.stdin, stdout: old.p.stdout, stderr: old.p.stderr,
		dial: old.p.dial, again: old.p.again, policy: conf.Policy, conf: conf, reloads: old.p.reloads,
	}
	p.start(&c.commonFlags)
	plan, err := c.plan(p)
	if err != nil {
		return nil, err
	}
	s, err := plan.prepare(ctx, r.at, old)
	if err != nil {
		return nil, err
	}
	if r.certs != nil {
		if err := r.certs.Use(c.TLSCert, c.TLSKey); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	secure(p, s.endpointBase, r.certs)
	return s, nil
}

// reloading is the timeout of a reload after the dashboard saves the configuration.
const reloading = 30 * time.Second

// save returns a function that changes the configuration file and reloads it. Without a file,
// save returns nil. If the function fails, the file is unchanged. It returns ErrInvalid for
// invalid values, and ErrConflict if the file has changed since it was loaded. If the values of
// the keys do not come from the file, or the file is read-only, it returns ErrForbidden.
func (s *service) save() func(context.Context, config.Changes) error {
	conf, p := s.p.conf, s.p
	if conf == nil || conf.Path == "" || p.reloads == nil {
		return nil
	}
	return func(ctx context.Context, changes config.Changes) error {
		// Finish the save even if the request ends.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reloading)
		defer cancel()
		if _, err := extract.NewRules(&extract.RulesOptions{Keep: changes.Lists["keep"], Drop: changes.Lists["drop"]}); err != nil {
			return err
		}
		return conf.Save(changes, func() error {
			done := make(chan error, 1)
			select {
			case p.reloads <- done:
			case <-ctx.Done():
				return fmt.Errorf("reload configuration: %w: the server did not accept the request; try again", millrace.ErrUnavailable)
			}
			return <-done
		})
	}
}
