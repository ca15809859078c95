package main

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"

	"github.com/millrace/millrace/internal/gateway"
)

// running is a server at work. Its configuration can be read again: a right one
// takes over as soon as it has an edition, a wrong one leaves everything as it
// was.
type running struct {
	now    *service // answers
	next   *service // is about to take over; nil = none is
	at     net.Addr
	certs  *gateway.Certificates    // nil = no TLS
	ready  func(now *service) error // is told of the first edition
	server *gateway.Server
	ended  chan struct{} // nothing is answered any more
	gone   sync.WaitGroup
}

// asked gives the signals to read the configuration again; nil = there are none.
// One that comes before the server is at work waits: nobody can tell from outside
// when that is, and it would end the process.
func (p *process) asked() (signals <-chan os.Signal, deaf func()) {
	if p.hangups == nil || p.again == nil {
		return nil, func() {}
	}
	return p.hangups()
}

// until serves until its context ends, or no more is asked.
func (r *running) until(ctx context.Context, ln net.Listener, asked <-chan os.Signal) error {
	p := r.now.p
	r.server = gateway.NewServer(r.now.Gateway, &gateway.ServerOptions{TLS: r.certs, Log: p.log})
	r.ended = make(chan struct{})
	secure(p, r.now.docs, r.certs)
	ctx, cancel := context.WithCancel(ctx)
	defer r.gone.Wait()
	r.now.tend(ctx)
	r.now.Start(ctx)
	served := make(chan error, 1)
	go func() {
		served <- r.server.Run(ctx, ln)
		close(r.ended)
	}()
	if r.certs != nil {
		r.gone.Go(func() { r.certs.Run(ctx) })
	}
	p.notify("READY=1", "STATUS=listening on "+ln.Addr().String())
	err := r.watch(ctx, served, asked)
	p.notify("STOPPING=1")
	cancel()
	<-r.ended
	if err == nil {
		select {
		case err = <-served:
		default:
		}
	}
	for _, s := range []*service{r.now, r.next} {
		if s != nil {
			s.Pause()
			s.dismiss()
		}
	}
	return err
}

// watch does what there is to do, until the context ends or something fails.
func (r *running) watch(ctx context.Context, served <-chan error, asked <-chan os.Signal) error {
	told := false
	for {
		var first, follows <-chan struct{}
		var stumbles <-chan error
		if !told {
			first = r.now.Press.Ready()
		}
		if r.next != nil {
			follows, stumbles = r.next.Press.Ready(), r.next.Failed()
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return err
		case err := <-r.now.Failed():
			return err
		case <-first:
			told = true
			r.now.overlook(ctx)
			r.now.p.notify("STATUS=serving " + r.now.docs)
			if err := r.ready(r.now); err != nil {
				return err
			}
		case _, more := <-asked:
			if !more {
				return nil
			}
			_ = r.reload(ctx) // the log tells
		case done := <-r.now.p.wishes:
			done <- r.reload(ctx)
		case <-follows:
			r.take()
			r.now.overlook(ctx)
		case err := <-stumbles:
			r.drop(ctx, err)
		}
	}
}

// drop goes on with the configuration from before, because the next one has
// failed at its work.
func (r *running) drop(ctx context.Context, err error) {
	r.now.p.log.Error("the new configuration cannot be used; the one from before goes on", "error", err)
	r.next.Pause()
	r.next.dismiss()
	r.next = nil
	r.now.Start(ctx)
}

// reload reads the configuration again. Whatever is wrong with it is logged.
func (r *running) reload(ctx context.Context) error {
	log := r.now.p.log
	r.now.p.notify("RELOADING=1")
	defer r.now.p.notify("READY=1")
	s, err := r.renew(ctx)
	if err != nil {
		if ctx.Err() == nil {
			log.Error("the configuration is wrong; the one from before goes on", "error", err)
		}
		return err
	}
	log.Info("the configuration has been read again")
	if r.next != nil {
		r.next.Pause()
		r.next.dismiss()
	} else {
		r.now.Pause()
	}
	r.next = s
	s.tend(ctx)
	s.Start(ctx)
	if r.now.Press.Current() == nil {
		r.take() // nothing would be lost
	}
	return nil
}

// renew makes a service of the configuration as it is now.
func (r *running) renew(ctx context.Context) (*service, error) {
	old := r.now
	line, conf, err := old.p.again()
	if err != nil {
		return nil, err
	}
	c := &line.Serve
	if err := old.c.fixed(c); err != nil {
		return nil, err
	}
	p := &process{
		lookup: old.p.lookup, stdin: old.p.stdin, stdout: old.p.stdout, stderr: old.p.stderr,
		dial: old.p.dial, again: old.p.again, policy: conf.policy, conf: conf, wishes: old.p.wishes,
	}
	p.start(&c.common)
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
	secure(p, s.docs, r.certs)
	return s, nil
}

// take has the next service answer.
func (r *running) take() {
	was := r.now
	r.now, r.next = r.next, nil
	empty := r.server.Use(r.now.Gateway)
	was.Press.Forget()
	r.now.p.log.Info("the new configuration is in use", "base", r.now.docs)
	r.gone.Go(func() {
		select {
		case <-empty:
		case <-r.ended:
		}
		was.dismiss()
	})
}
