package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/webauth"
)

// signatureFlags holds the flags of a server that signs responses and verifies signatures.
type signatureFlags struct {
	SignResponses string   `placeholder:"FILE" help:"Sign every machine document with the key in this file, which millrace keys sign creates (default: documents are not signed). The key is published with those of --sign-directory."`
	SignDirectory []string `placeholder:"FILE" help:"Files with keys to publish at /.well-known/http-message-signatures-directory. Private keys, such as that of --sign-key, also sign the directory." hidden:""`
	WebBotAuth    bool     `help:"Verify the Web Bot Auth signatures of bots (default: no). millrace fetches the bots' keys, from public addresses only."`
	PrivateAgents bool     `help:"With --web-bot-auth: also fetch keys over http and from loopback and private addresses, for bots in your own network (default: no). Clients can then make the server request URLs there." hidden:""`

	responseKey *webauth.Key   // signs responses. If nil, they are not signed.
	published   webauth.KeySet // keys in the directory
}

// validate reads the keys, and rejects invalid flags.
func (c *signatureFlags) validate() (err error) {
	if c.PrivateAgents && !c.WebBotAuth {
		return usageError("--private-agents: only valid with --web-bot-auth")
	}
	if c.published = (webauth.KeySet{}); c.SignResponses != "" {
		if c.responseKey, err = readSigningKey("--sign-responses", c.SignResponses); err != nil {
			return err
		}
		c.published.Signers = append(c.published.Signers, c.responseKey)
	}
	for _, file := range c.SignDirectory {
		if err := c.published.Read(file); err != nil {
			return inFlag("--sign-directory", err)
		}
	}
	return nil
}

// signer returns the signer of responses, or nil.
func (c *signatureFlags) signer(endpointBase string) (edition.Signer, error) {
	path, err := basepath.Of(endpointBase)
	if c.responseKey == nil || err != nil {
		return nil, err
	}
	return webauth.NewStamp(c.responseKey, path), nil
}

// directory returns the handler of the key directory, or nil if there are no keys.
func (c *signatureFlags) directory(endpointBase string) (http.Handler, error) {
	if len(c.published.Signers)+len(c.published.Public) == 0 {
		return nil, nil
	}
	return webauth.NewDirectory(endpointBase, c.published.Signers, c.published.Public)
}

// verifier makes the gateway verify the signatures of bots. bases are the schemes and
// authorities of the site's URLs. was is the verifier of the previous configuration, or nil.
func (c *signatureFlags) verifier(p *process, r *fetchFlags, g *gateway.Options, was *webauth.Verifier, clock func() time.Time, bases ...string) (now *webauth.Verifier, err error) {
	if !c.WebBotAuth {
		for _, r := range g.Access.Rules {
			if strings.Contains(r.Name, ".") && g.Access.Bots.Named(r.Name) == nil {
				return nil, usageError(fmt.Sprintf("--bot: %s is a host of signing keys, but signatures are not verified; add --web-bot-auth, or name a bot or its operator", r.Name))
			}
		}
		return nil, nil
	}
	if was != nil {
		now = was.At(clock, bases...) // keeps the record of used nonces
	} else {
		o := webauth.ClientOptions(&fetch.Options{AllowPrivate: c.PrivateAgents, UserAgent: r.UserAgent, Contact: r.Contact, Logger: p.log, Dial: p.dial})
		now = webauth.NewVerifier(&webauth.VerifierOptions{Client: fetch.New(o).HTTP(), AllowHTTP: c.PrivateAgents, Bases: bases, Now: clock})
	}
	g.Access.Agents = now
	return now, nil
}
