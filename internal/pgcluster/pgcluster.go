//go:build unix

// Package pgcluster runs throwaway servers of PostgreSQL, for tests and benchmarks.
package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Programs are the programs that a cluster needs, as alternatives separated by "|".
var Programs = []string{"initdb|" + debian + "initdb", "postgres|" + debian + "postgres"}

// Pooler is the program that [Cluster.Pool] needs.
const Pooler = "pgbouncer"

const debian = "/usr/lib/postgresql/15/bin/"

// startTimeout limits the time for a server to accept connections.
const startTimeout = 5 * time.Minute

// Cluster is a server with its own folder. It accepts connections on a socket in the folder,
// without a password for the user "postgres", and with a password for other users.
type Cluster struct {
	dir    string
	owner  *syscall.Credential // user that runs the programs. If nil, this process's user.
	server *process
	pool   *process
}

// process is a running program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has exited
}

// New creates a cluster below a folder and starts it. settings are parameters, such as
// "fsync=off". If this process runs as root, the server runs as another user.
func New(ctx context.Context, parent string, settings ...string) (*Cluster, error) {
	dir, err := os.MkdirTemp(parent, "pg") // a short name, because the path of a socket is limited
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	if os.Geteuid() == 0 {
		if c.owner, err = other(); err != nil {
			return nil, err
		}
		if err := os.Chown(dir, int(c.owner.Uid), int(c.owner.Gid)); err != nil {
			return nil, err
		}
	}
	made := c.command(ctx, Programs[0], "--pgdata", c.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions")
	if out, err := made.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	const access = "local all postgres trust\nlocal all all scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(c.data(), "pg_hba.conf"), []byte(access), 0o600); err != nil {
		return nil, err
	}
	settings = append([]string{"listen_addresses=", "unix_socket_directories=" + dir, "max_connections=300", "shared_buffers=64MB"}, settings...)
	if err := c.Configure(settings...); err != nil {
		return nil, err
	}
	return c, c.Start(ctx)
}

// other returns another user for the server, which must not run as root.
func other() (*syscall.Credential, error) {
	for _, find := range []func() (*user.User, error){
		func() (*user.User, error) { return user.Lookup("postgres") },
		func() (*user.User, error) { return user.LookupId("65534") }, // a user without privileges on every system
	} {
		if u, err := find(); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root; create a user postgres")
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// command returns a command of the cluster's user.
func (c *Cluster) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	path := program
	for name := range strings.SplitSeq(program, "|") {
		for _, at := range []string{name, "/usr/sbin/" + name} {
			if found, err := exec.LookPath(at); err == nil {
				path = found
			}
		}
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner}
	return cmd
}

// Configure adds parameters to the configuration. The next Start uses them.
func (c *Cluster) Configure(settings ...string) error {
	f, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		fmt.Fprintf(f, "%s = '%s'\n", name, value)
	}
	return f.Close()
}

// run starts a program and waits until it accepts connections at a URL.
func (c *Cluster) run(ctx context.Context, at string, cmd *exec.Cmd) (*process, error) {
	log, err := os.Create(filepath.Join(c.dir, filepath.Base(cmd.Path)+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, at)
		if err == nil {
			return p, conn.Close(ctx)
		}
		select {
		case <-p.done:
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("%s has exited: %s", cmd.Path, text)
		case <-ctx.Done():
			p.stop(syscall.SIGKILL)
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *process) stop(s syscall.Signal) {
	if p != nil {
		_ = p.cmd.Process.Signal(s)
		<-p.done
	}
}

// Start starts the server again after Stop or Kill.
func (c *Cluster) Start(ctx context.Context) (err error) {
	c.server, err = c.run(ctx, c.URL("postgres"), c.command(context.WithoutCancel(ctx), Programs[1], "-D", c.data()))
	return err
}

// Stop ends the server and its connections.
func (c *Cluster) Stop() { c.server.stop(syscall.SIGINT) }

// Kill ends the server without a shutdown, as after a power cut, and keeps its files.
func (c *Cluster) Kill() { c.server.stop(syscall.SIGQUIT) }

// Close stops all servers and removes the folder.
func (c *Cluster) Close() error {
	c.pool.stop(syscall.SIGINT)
	c.server.stop(syscall.SIGQUIT)
	return os.RemoveAll(c.dir)
}

// URL returns the DSN of a database for the user "postgres".
func (c *Cluster) URL(database string) string { return dsn("postgres", database, c.dir, nil) }

func dsn(role, database, host string, more url.Values) string {
	q := url.Values{"host": {host}}
	for k, v := range more {
		q[k] = v
	}
	u := url.URL{Scheme: "postgres", User: url.User(role), Path: "/" + database, RawQuery: q.Encode()}
	return u.String()
}

// Exec runs a statement without parameters in a database.
func (c *Cluster) Exec(ctx context.Context, database, statement string) error {
	conn, err := pgx.Connect(ctx, c.URL(database))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

// Create creates a database and returns its DSN.
func (c *Cluster) Create(ctx context.Context, database string) (string, error) {
	return c.URL(database), c.Exec(ctx, "postgres", "CREATE DATABASE "+pgx.Identifier{database}.Sanitize())
}

// Pool starts PgBouncer, in transaction mode, in front of the server. It returns a function that
// returns the DSN of a database for connections through PgBouncer.
func (c *Cluster) Pool(ctx context.Context) (func(database string) string, error) {
	const port = "6432"
	config := filepath.Join(c.dir, "pgbouncer.ini")
	lines := []string{
		"[databases]", "* = host=" + c.dir, "[pgbouncer]", "pool_mode = transaction", "listen_port = " + port, "unix_socket_dir = " + c.dir,
		"auth_type = trust", "auth_file = " + filepath.Join(c.dir, "users.txt"), "max_client_conn = 1000", "default_pool_size = 4",
	}
	files := map[string]string{config: strings.Join(lines, "\n") + "\n", filepath.Join(c.dir, "users.txt"): "\"postgres\" \"\"\n"}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil { //nolint:gosec // the server's user reads it
			return nil, err
		}
	}
	at := func(database string) string {
		return dsn("postgres", database, c.dir, url.Values{"port": {port}, "default_query_exec_mode": {"exec"}})
	}
	var err error
	c.pool, err = c.run(ctx, at("postgres"), c.command(context.WithoutCancel(ctx), Pooler, config))
	return at, err
}

// Standby makes the server a read-only standby of a primary that does not respond. It takes effect
// at the next Start.
func (c *Cluster) Standby() error {
	signal := filepath.Join(c.data(), "standby.signal")
	return errors.Join(os.WriteFile(signal, nil, 0o600), c.chown(signal), c.Configure("restore_command=false"))
}

func (c *Cluster) chown(files ...string) error {
	if c.owner == nil {
		return nil
	}
	i := slices.IndexFunc(files, func(f string) bool { return os.Chown(f, int(c.owner.Uid), int(c.owner.Gid)) != nil })
	if i >= 0 {
		return fmt.Errorf("cannot change the owner of %s", files[i])
	}
	return nil
}
