// Package s3server runs throwaway S3 servers for tests and benchmarks: versitygw with its objects
// in a folder.
package s3server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Program is the program that a server needs: github.com/versity/versitygw/cmd/versitygw.
const Program = "versitygw"

// Key and Secret are the credentials of the administrator.
const (
	Key    = "millrace"
	Secret = "throwaway-secret"
)

// startTimeout limits the time until a server responds.
const startTimeout = time.Minute

// Server is a server on the loopback interface with its own folder.
type Server struct {
	dir  string
	addr string
	cmd  *exec.Cmd
}

// New creates a server below a folder and starts it.
func New(ctx context.Context, parent string) (*Server, error) {
	dir, err := os.MkdirTemp(parent, "s3")
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, addr: l.Addr().String()}
	for _, name := range []string{"objects", "users", "fields"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, err
	}
	return s, s.Start(ctx)
}

// Start starts the server again after Stop, with the same objects.
func (s *Server) Start(ctx context.Context) error {
	if err := s.removeFieldsWithoutObjects(); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(Program, "--access", Key, "--secret", Secret, "--port", s.addr, "--quiet", "--keep-alive", "--health", "/health", "--iam-dir", filepath.Join(s.dir, "users"), //nolint:noctx // stopped by Stop
		"posix", "--sidecar", filepath.Join(s.dir, "fields"), filepath.Join(s.dir, "objects"))
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint()+"/health", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			return resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			s.Stop()
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%s: %w: %s", Program, err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// removeFieldsWithoutObjects removes the fields of objects that do not exist. The program writes the
// fields first and the object last. If the program is killed in between, conditional writes of that
// object fail forever, but reads do not find the object. Real S3 servers write both atomically.
func (s *Server) removeFieldsWithoutObjects() error {
	fields := filepath.Join(s.dir, "fields")
	return filepath.WalkDir(fields, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "meta" {
			return err
		}
		object, err := filepath.Rel(fields, filepath.Dir(path))
		if err != nil {
			return err
		}
		if _, err = os.Stat(filepath.Join(s.dir, "objects", object)); errors.Is(err, fs.ErrNotExist) {
			err = os.RemoveAll(path)
		}
		return cmp.Or(err, fs.SkipDir)
	})
}

// Stop kills the server and keeps its objects.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Close kills the server and removes its folder.
func (s *Server) Close() error {
	s.Stop()
	return os.RemoveAll(s.dir)
}

// Endpoint returns the URL of the server.
func (s *Server) Endpoint() string { return "http://" + s.addr }

// Client returns a client with the permissions of the administrator.
func (s *Server) Client() (*minio.Client, error) {
	return minio.New(s.addr, &minio.Options{Creds: credentials.NewStaticV4(Key, Secret, ""), Region: "us-east-1"})
}

// Create creates a bucket and returns the URL of a prefix in it.
func (s *Server) Create(ctx context.Context, bucket, prefix string) (string, error) {
	c, err := s.Client()
	if err != nil {
		return "", err
	}
	return s.URL(bucket, prefix), c.MakeBucket(ctx, bucket, minio.MakeBucketOptions{})
}

// URL returns the URL of a prefix in a bucket.
func (s *Server) URL(bucket, prefix string) string {
	return "s3://" + bucket + "/" + prefix + "?endpoint=" + url.QueryEscape(s.Endpoint())
}

// AddUser adds a user without permissions.
func (s *Server) AddUser(ctx context.Context, key, secret string) error {
	cmd := exec.CommandContext(ctx, Program, "admin", "--access", Key, "--secret", Secret, "--endpoint-url", s.Endpoint(), "create-user", "--access", key, "--secret", secret, "--role", "user")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", Program, err, out)
	}
	return nil
}
