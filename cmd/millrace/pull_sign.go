package main

import (
	"fmt"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/webauth"
)

// signing are the flags of a command that says who it is.
type signing struct {
	SignKey   string `placeholder:"FILE" help:"Sign every request by Web Bot Auth, so that sites know whose it is, with the key in a file, which millrace keys sign makes (default: requests are not signed)."`
	SignAgent string `placeholder:"URL" help:"With --sign-key: where the key is published (see millrace keys directory), such as https://bot.example.com/.well-known/http-message-signatures-directory."`

	signer *webauth.Signer // nil = nobody signs
}

// loadSigner reads the key that signs.
func (s *signing) loadSigner() error {
	switch {
	case s.SignKey == "" && s.SignAgent == "":
		return nil
	case s.SignKey == "":
		return usageError("--sign-agent: there is no --sign-key FILE to sign with")
	case s.SignAgent == "":
		return usageError("--sign-key: nobody can verify a signature without knowing where its key is: name the URL with --sign-agent")
	}
	key, err := readSigningKey("--sign-key", s.SignKey)
	if err != nil {
		return err
	}
	if s.signer, err = webauth.NewSigner(key, s.SignAgent, nil); err != nil {
		return usageError("--sign-agent: " + err.Error())
	}
	return nil
}

// readSigningKey reads a key that signs, which a flag has named.
func readSigningKey(flag, file string) (*webauth.Key, error) {
	b, err := readStart(file, maxKeyFile)
	if err != nil {
		return nil, usageError(flag + ": " + err.Error())
	}
	key, err := webauth.ParseKey(b)
	if err != nil {
		return nil, usageError(fmt.Sprintf("%s %s: %v; millrace keys sign FILE makes one", flag, file, err))
	}
	return key, nil
}

// sign has requests signed.
func (s *signing) sign(o *fetch.Options) {
	if s.signer != nil {
		o.Sign = s.signer.Sign
	}
}

// sealed gives what verifies the signatures of a site's answers.
func (c *pullCommand) sealed(p *process) *webauth.Seal {
	c.sealing.Do(func() {
		o := c.remote.clientOptions(p, nil)
		c.sign(o)
		c.seal = webauth.NewSeal(&webauth.SealOptions{Client: fetch.New(webauth.ClientOptions(o)).HTTP()})
	})
	return c.seal.Another()
}

// earClient makes a client that listens to events.
func (c *pullCommand) earClient(p *process, robots fetch.RobotsMemory) *fetch.Client {
	o := c.clientOptions(p, robots)
	c.sign(o)
	return fetch.New(o)
}

// lied gives the error of a way whose answers were not what the site has
// signed, since there were so many of them.
func (s *sitePull) lied(before int64) error {
	if s.seal.Sealed().Wrong > before {
		return s.seal.Err()
	}
	return nil
}

// signedReport gives what a report says of signatures, nil if there were none.
func signedReport(s *webauth.Seal) *webauth.Sealed {
	c := s.Sealed()
	if c.Verified+c.Wrong+c.Unverified == 0 {
		return nil
	}
	return &c
}

// signedText says it for a person.
func (r *pullReport) signedText() string {
	if r.Signed == nil {
		return ""
	}
	text := fmt.Sprintf("  %s signed by the site, and right", humanize.Quantity(r.Signed.Verified, "answer"))
	if n := r.Signed.Wrong; n > 0 {
		text += fmt.Sprintf("; %d wrong, which were not taken", n)
	}
	if n := r.Signed.Unverified; n > 0 {
		text += fmt.Sprintf("; %d by a key that the site does not publish", n)
	}
	return text + "\n"
}
