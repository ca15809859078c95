package main

import (
	"fmt"
	"net/http"

	"github.com/millrace/millrace/internal/webauth"
)

// signFlags holds the flags of a command that signs its requests.
type signFlags struct {
	SignKey   string `placeholder:"FILE" help:"Sign every request (Web Bot Auth) with the key in this file, which millrace keys sign creates (default: requests are not signed)."`
	SignAgent string `placeholder:"URL" help:"With --sign-key: URL where the key is published, such as https://bot.example.com/.well-known/http-message-signatures-directory (see millrace keys directory)."`

	sign func(*http.Request) error // If nil, do not sign.
}

// loadSigner reads the signing key.
func (s *signFlags) loadSigner() error {
	switch {
	case s.SignKey == "" && s.SignAgent == "":
		return nil
	case s.SignKey == "":
		return usageError("--sign-agent: requires --sign-key FILE")
	case s.SignAgent == "":
		return usageError("--sign-key: signatures contain the URL of the key directory; set it with --sign-agent")
	}
	key, err := readSigningKey("--sign-key", s.SignKey)
	if err != nil {
		return err
	}
	signer, err := webauth.NewSigner(key, s.SignAgent)
	if err != nil {
		return usageError("--sign-agent: " + err.Error())
	}
	s.sign = signer.Sign
	return nil
}

// readSigningKey reads a signing key from the file of a flag.
func readSigningKey(flag, file string) (*webauth.Key, error) {
	b, err := readStart(file, maxKeyFile)
	if err != nil {
		return nil, usageError(flag + ": " + err.Error())
	}
	key, err := webauth.ParseKey(b)
	if err != nil {
		return nil, usageError(fmt.Sprintf("%s %s: %v; create a key with millrace keys sign FILE", flag, file, err))
	}
	return key, nil
}
