package conns

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

// Certificates holds the certificate of a server and reloads it when its files
// change. All methods are safe for concurrent use.
type Certificates struct {
	log  *slog.Logger
	time func() time.Time
	now  atomic.Pointer[tls.Certificate]

	mu        sync.Mutex // held while reading the files; guards the fields below
	cert, key string
	seen      [2]stamp
	failed    string // error of the last read, or ""
	warned    time.Time
}

// stamp identifies a version of a file.
type stamp struct {
	size     int64
	modified time.Time
	err      string
}

// Intervals of Run.
const (
	certEvery = 5 * time.Second     // interval of the checks of the files
	certWarn  = 14 * 24 * time.Hour // warnings start this long before the expiry
	certAgain = 24 * time.Hour      // interval of the warnings
)

// LoadCertificates reads a certificate chain and its key, both in PEM format. If log is nil, nothing
// is logged. An error wraps [millrace.ErrInvalid] if the files exist and are invalid.
func LoadCertificates(cert, key string, log *slog.Logger) (*Certificates, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Certificates{log: log, time: time.Now}
	if err := c.Use(cert, key); err != nil {
		return nil, err
	}
	return c, nil
}

// Use switches to other files, or reads the same files again. After an error, the previous
// certificate stays in use.
func (c *Certificates) Use(cert, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := [2]stamp{stampOf(cert), stampOf(key)} // taken before reading, so that no change is missed
	if err := c.read(cert, key); err != nil {
		return err
	}
	c.cert, c.key, c.seen, c.failed = cert, key, seen, ""
	return nil
}

// read reads the files. The caller holds the lock.
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
	c.log.Info("certificate loaded", "path", cert, "hosts", pair.Leaf.DNSNames, "until", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	c.warn()
	return nil
}

// warn logs a message at intervals if the certificate expires soon, has expired, or is not valid
// yet.
func (c *Certificates) warn() {
	leaf, now := c.now.Load().Leaf, c.time()
	if now.Sub(c.warned) < certAgain {
		return
	}
	switch left := leaf.NotAfter.Sub(now); {
	case left <= 0:
		c.log.Error("certificate has expired; clients cannot connect", "until", leaf.NotAfter.UTC().Format(time.RFC3339))
	case left < certWarn && left < leaf.NotAfter.Sub(leaf.NotBefore)/3:
		c.log.Warn("certificate expires soon", "until", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		c.log.Error("certificate is not valid yet; clients cannot connect", "from", leaf.NotBefore.UTC().Format(time.RFC3339))
	default:
		return
	}
	c.warned = now
}

// Covers returns an error if the certificate is not valid for a host.
func (c *Certificates) Covers(host string) error { return c.now.Load().Leaf.VerifyHostname(host) }

// Run reloads the files when they change, until the context ends. It logs an
// invalid pair of files once and keeps the previous certificate.
func (c *Certificates) Run(ctx context.Context) {
	tick := time.NewTicker(certEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.Reload()
		}
	}
}

// Reload reads the files if they have changed or the last read failed. It retries after a
// failure because new permissions change neither the size nor the time.
func (c *Certificates) Reload() {
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
			c.log.Error("could not reload certificate; keeping previous certificate", "err", err)
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

// Get implements [tls.Config.GetCertificate].
func (c *Certificates) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil }
