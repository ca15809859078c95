package agent

import (
	"net/http"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/webauth"
)

// clientOptions returns the options that all clients have in common. If robots is nil, the client
// ignores robots.txt.
func (a *Agent) clientOptions(robots fetch.RobotsMemory) *fetch.Options {
	return &fetch.Options{
		AllowPrivate: a.o.AllowPrivate, UserAgent: a.o.UserAgent, Contact: a.o.Contact, Delay: a.o.Delay,
		Robots: robots, IgnoreRobots: robots == nil, Sign: a.o.Sign, Dial: a.o.Dial, Logger: a.o.Logger,
	}
}

// robots returns the cache of robots.txt files, or nil if the agent ignores robots.txt.
func (a *Agent) robots() fetch.RobotsMemory {
	if a.o.IgnorePolicy {
		return nil
	}
	return ingest.Robots{State: a.store.State()}
}

// siteClient returns the client of one pull. All pulls share one request queue per host, so the
// limits of a host apply to all pulls together. If verifier is not nil, it verifies responses.
func (a *Agent) siteClient(verifier *webauth.ResponseVerifier) *fetch.Client {
	o := a.clientOptions(a.robots())
	o.SharedQueues, o.MaxReceived = a.shared, a.o.MaxBytes
	if a.inTurn != nil {
		a.inTurn(o)
	}
	if a.o.Dictionaries != "" {
		o.Dictionaries = dictionaries{state: a.store.State(), folder: a.o.Dictionaries}
	}
	if verifier != nil {
		o.Check = verifier.Check
	}
	return fetch.New(o)
}

// keyClient returns the client that fetches the keys of signatures during one pull.
func (a *Agent) keyClient() *fetch.Client {
	o := webauth.ClientOptions(a.clientOptions(nil))
	o.SharedQueues, o.Delay = a.shared, a.o.Delay
	if a.inTurn != nil {
		a.inTurn(o)
	}
	return fetch.New(o)
}

// withKeys returns a client that sends each origin its access key, if Options.Key returns one.
func (a *Agent) withKeys(c *fetch.Client) *http.Client { return fetch.WithKeys(c.HTTP(), a.o.Key) }

// checkSignatures returns an error if the number of invalid signatures has risen above before.
func (s *sitePull) checkSignatures(before int64) error {
	if s.verifier.Counts().Invalid > before {
		return s.verifier.Err()
	}
	return nil
}
