package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
)

// Certificates has the certificate of a [Server] from two files, and takes
// another one when these change. All methods are safe for concurrent use.
type Certificates struct {
	log  *slog.Logger
	time func() time.Time
	now  atomic.Pointer[tls.Certificate]

	mu        sync.Mutex // held while reading the files; guards the rest
	cert, key string
	seen      [2]stamp
	failed    string // what the last look has found wrong
	warned    time.Time
}

// stamp tells one state of a file from another.
type stamp struct {
	size     int64
	modified time.Time
	err      string
}

// How often Run does what.
const (
	certEvery = 5 * time.Second     // a look whether the files have changed
	certWarn  = 14 * 24 * time.Hour // before its end, a certificate is complained of
	certAgain = 24 * time.Hour      // between two complaints
)

// LoadCertificates reads a certificate, with those that it is signed by, and
// its key, both PEM. log may be nil. An error wraps [millrace.ErrInvalid] if the
// files are there and are not right.
func LoadCertificates(cert, key string, log *slog.Logger) (*Certificates, error) {
	if log == nil {
		log = slog.Default()
	}
	c := &Certificates{log: log, time: time.Now}
	if err := c.Use(cert, key); err != nil {
		return nil, err
	}
	return c, nil
}

// Use reads the certificate from other files, or again from the same ones. With
// an error, everything stays as it is.
func (c *Certificates) Use(cert, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := [2]stamp{stampOf(cert), stampOf(key)} // before they are read, lest a change is missed
	if err := c.read(cert, key); err != nil {
		return err
	}
	c.cert, c.key, c.seen, c.failed = cert, key, seen, ""
	return nil
}

// read reads the files. The lock is held.
func (c *Certificates) read(cert, key string) error {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		if _, missing := errors.AsType[*fs.PathError](err); missing {
			return fmt.Errorf("certificate: %w", err)
		}
		return millrace.Coded("certificate-pair", fmt.Errorf("certificate %s with key %s: %w: %w", cert, key, millrace.ErrInvalid, err))
	}
	c.now.Store(&pair)
	c.warned = time.Time{}
	c.log.Info("certificate", "file", cert, "names", pair.Leaf.DNSNames, "until", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	c.warn()
	return nil
}

// warn complains of a certificate that is about to end, now and then.
func (c *Certificates) warn() {
	leaf, now := c.now.Load().Leaf, c.time()
	if now.Sub(c.warned) < certAgain {
		return
	}
	switch left := leaf.NotAfter.Sub(now); {
	case left <= 0:
		c.log.Error("the certificate has expired: no client will connect", "until", leaf.NotAfter.UTC().Format(time.RFC3339))
	case left < certWarn && left < leaf.NotAfter.Sub(leaf.NotBefore)/3:
		c.log.Warn("the certificate is about to expire", "until", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		c.log.Error("the certificate is not valid yet: no client will connect", "from", leaf.NotBefore.UTC().Format(time.RFC3339))
	default:
		return
	}
	c.warned = now
}

// Covers returns an error if the certificate is not valid for a host.
func (c *Certificates) Covers(host string) error { return c.now.Load().Leaf.VerifyHostname(host) }

// Run looks whether the files have changed, until the context ends. What is not
// right, such as a certificate whose key is not there yet, is logged once, and
// the one from before goes on.
func (c *Certificates) Run(ctx context.Context) {
	tick := time.NewTicker(certEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.reload()
		}
	}
}

// reload reads the files if they have changed, and again and again while they are
// not right: that a key may be read now changes neither its size nor its time.
func (c *Certificates) reload() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warn()
	seen := [2]stamp{stampOf(c.cert), stampOf(c.key)}
	if seen == c.seen && c.failed == "" {
		return
	}
	failed := ""
	if err := c.read(c.cert, c.key); err != nil {
		failed = err.Error()
		if seen != c.seen || failed != c.failed {
			c.log.Error("the certificate cannot be taken; the one from before goes on", "err", err)
		}
	}
	c.seen, c.failed = seen, failed
}

func stampOf(file string) stamp {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{err: err.Error()}
	}
	return stamp{size: info.Size(), modified: info.ModTime()}
}

// get is what [tls.Config] asks for.
func (c *Certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil }
