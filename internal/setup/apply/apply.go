package apply

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/replace"
)

// Options configure an [Applier].
type Options struct {
	Root   string // folder that contains etc; may be relative to the working folder. If empty, "/".
	Base   string // public URL of the site
	Listen string // address of millrace
	Exec   string // path of the millrace program
	Config []byte // configuration of the service, for systemd
	// Run runs a program and returns its output. If nil, os/exec is used, and the systemd service
	// is started only if Root is empty.
	Run    func(ctx context.Context, name string, args ...string) ([]byte, error)
	Logger *slog.Logger // If nil, nothing is logged.
}

// Applier changes the configuration of one program. The process must hold [Lock].
type Applier struct {
	o       Options
	program string
	target
	now journal
}

// target contains the operations that differ between the programs.
type target interface {
	// plan tests the current configuration and returns the changes.
	plan(ctx context.Context) ([]change, error)
	test(ctx context.Context) error   // tests the configuration on the disk
	reload(ctx context.Context) error // makes the program use the configuration
	stop(ctx context.Context) error   // stops the program before files are restored
}

// journal lists the changes of one program. It is written before the first change.
type journal struct {
	Done    bool     `json:"done"`    // all changes are made, tested and checked
	Changes []change `json:"changes"` // changes in the order in which they are made
	Folders []string `json:"folders"` // created folders, parents first
}

// change is one changed file.
type change struct {
	File     string   `json:"file"`
	Copy     string   `json:"copy,omitempty"`     // copy of the old file; "" = the file is new
	Inserted []string `json:"inserted,omitempty"` // texts inserted into the old file
	Sum      string   `json:"sum"`                // SHA-256 of the new file

	data []byte // content of the new file
	mode fs.FileMode
}

// Programs returns the programs that can be configured.
func Programs() []string { return []string{"nginx", "caddy", "systemd"} }

// New returns an applier for a program, one of [Programs].
func New(program string, o *Options) *Applier {
	a := &Applier{o: *o, program: program}
	a.o.Root = cmp.Or(a.o.Root, "/")
	if root, err := filepath.Abs(a.o.Root); err == nil { // programs and the journal need an absolute path
		a.o.Root = root
	}
	if a.o.Logger == nil {
		a.o.Logger = slog.New(slog.DiscardHandler)
	}
	switch program {
	case "nginx":
		a.target = &nginx{a}
	case "caddy":
		a.target = &caddy{a}
	default:
		a.target = &systemd{a, a.o.Root == "/" || a.o.Run != nil}
	}
	if a.o.Run == nil {
		a.o.Run = func(ctx context.Context, name string, args ...string) ([]byte, error) {
			return exec.CommandContext(ctx, name, args...).CombinedOutput()
		}
	}
	return a
}

// Lock prevents other processes from calling Prepare, Apply and Undo below a root, until unlock is
// called or the process ends. Without the lock, Prepare would mistake a run of another process for
// an interrupted run. If another process has the lock, Lock returns an error with the code
// apply-running. The lock is on the root folder itself, so no lock file remains.
func Lock(root string) (unlock func(), err error) {
	lock := flock.New(cmp.Or(root, "/"), flock.SetFlag(os.O_RDONLY))
	locked, err := lock.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("apply: %w", err)
	case !locked:
		return nil, millrace.Coded("apply-running", fmt.Errorf("%w: another millrace process is changing the configuration; try again when it has finished", millrace.ErrConflict))
	}
	return func() { _ = lock.Close() }, nil
}

// Program returns the name of the program.
func (a *Applier) Program() string { return a.program }

// path returns the path of a file below the root.
func (a *Applier) path(name string) string { return filepath.Join(a.o.Root, name) }

func (a *Applier) journal() string { return a.path("etc/millrace/applied/" + a.program + ".json") }

// run runs a program. Its error contains the end of the output.
func (a *Applier) run(ctx context.Context, name string, args ...string) error {
	_, err := a.output(ctx, name, args...)
	return err
}

func (a *Applier) output(ctx context.Context, name string, args ...string) ([]byte, error) {
	out, err := a.o.Run(ctx, name, args...)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%w; run this on the machine of the site's server", err)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return out, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return out, nil
}

// load reads the journal. Without one, it returns fs.ErrNotExist.
func (a *Applier) load() error {
	data, err := os.ReadFile(a.journal())
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &a.now); err != nil {
		return fmt.Errorf("%s: %w", a.journal(), err)
	}
	return nil
}

func (a *Applier) save() error {
	data, err := json.MarshalIndent(&a.now, "", "  ")
	if err != nil {
		return err
	}
	return write(a.journal(), data)
}

func write(name string, data []byte) error {
	return replace.File(name, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// Prepare tests the current configuration and plans the changes. It first undoes an interrupted
// run. It writes only the journal, so that missing permissions are detected early. It reports
// whether the configuration is already applied, so that nothing needs to be done.
func (a *Applier) Prepare(ctx context.Context) (applied bool, err error) {
	switch err := a.load(); {
	case err == nil && a.now.Done:
		return true, nil
	case err == nil:
		a.o.Logger.Warn("undoing an interrupted run", "path", a.journal())
		if err := a.undo(ctx, len(a.now.Changes) > 0); err != nil {
			return false, a.denied(err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return false, a.denied(err)
	}
	a.now = journal{}
	if err := errors.Join(a.note(filepath.Dir(a.journal())), a.folders(), a.save()); err != nil {
		return false, a.denied(errors.Join(err, a.undo(ctx, false)))
	}
	if a.now.Changes, err = a.plan(ctx); err == nil {
		err = a.writable()
	}
	if err != nil {
		a.now.Changes = nil
		return false, a.denied(errors.Join(err, a.undo(ctx, false)))
	}
	return false, nil
}

// denied wraps an error. If a permission is missing, the error contains instructions.
func (a *Applier) denied(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("apply %s: %w; nothing was changed; run the command with sudo", a.program, err)
	}
	return fmt.Errorf("apply %s: %w", a.program, err)
}

// note records a folder that does not exist, and its missing parents.
func (a *Applier) note(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || slices.Contains(a.now.Folders, dir) {
		return err
	}
	if err := a.note(filepath.Dir(dir)); err != nil {
		return err
	}
	a.now.Folders = append(a.now.Folders, dir)
	return nil
}

// folders creates the recorded folders.
func (a *Applier) folders() error {
	for _, dir := range a.now.Folders {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // servers read them
			return err
		}
	}
	return nil
}

// writable returns an error if a permission to write one of the changes is missing.
func (a *Applier) writable() error {
	for _, c := range a.now.Changes {
		dir := filepath.Dir(c.File)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue // created later, with the permissions that also allow writing the journal
		}
		f, err := os.CreateTemp(dir, ".millrace-*")
		if err != nil {
			return fmt.Errorf("write %s: %w", c.File, errors.Unwrap(err))
		}
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Apply makes the changes of [Applier.Prepare], tests the configuration, reloads the program and
// calls check. If anything fails, it undoes all changes.
func (a *Applier) Apply(ctx context.Context, check func(ctx context.Context) error) error {
	reloaded := false
	err := func() error {
		if err := a.change(); err != nil {
			return err
		}
		if err := a.test(ctx); err != nil {
			return err
		}
		reloaded = true
		if err := a.reload(ctx); err != nil {
			return err
		}
		if err := check(ctx); err != nil {
			return err
		}
		a.now.Done = true
		return a.save()
	}()
	if err == nil {
		return nil
	}
	if undo := a.undo(context.WithoutCancel(ctx), reloaded); undo != nil {
		return a.denied(errors.Join(err, fmt.Errorf("undo: %w", undo)))
	}
	return millrace.Coded("apply-undone", a.denied(fmt.Errorf("%w; all changes were undone", err)))
}

// change writes the journal, then the copies, and then the files.
func (a *Applier) change() error {
	copies := map[string][]byte{}
	for i := range a.now.Changes {
		c := &a.now.Changes[i]
		sum := sha256.Sum256(c.data)
		c.Sum = hex.EncodeToString(sum[:])
		if err := a.note(filepath.Dir(c.File)); err != nil {
			return err
		}
		old, err := os.ReadFile(c.File)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		c.Copy = filepath.Join(filepath.Dir(a.journal()), a.program+"-"+strconv.Itoa(i)+"-"+filepath.Base(c.File))
		copies[c.Copy] = old
	}
	if err := errors.Join(a.save(), a.folders()); err != nil {
		return err
	}
	for name, old := range copies {
		if err := write(name, old); err != nil {
			return err
		}
	}
	for _, c := range a.now.Changes {
		if err := write(c.File, c.data); err != nil {
			return err
		}
		if c.Copy == "" {
			if err := os.Chmod(c.File, c.mode); err != nil {
				return err
			}
		}
		a.o.Logger.Info("file written", "path", c.File, "copy", c.Copy)
	}
	return nil
}

// Changes returns the paths of the changed files.
func (a *Applier) Changes() []string {
	var out []string
	for _, c := range a.now.Changes {
		out = append(out, c.File)
	}
	return out
}

// Undo restores all files of an earlier run, even an interrupted one, and reloads the program.
// Without a journal, it does nothing and returns false.
func (a *Applier) Undo(ctx context.Context) (done bool, err error) {
	switch err := a.load(); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, a.denied(err)
	}
	if err := a.undo(ctx, len(a.now.Changes) > 0); err != nil {
		return false, a.denied(err)
	}
	return true, nil
}

// undo restores the files. It removes the journal last, so that undo can be repeated.
func (a *Applier) undo(ctx context.Context, reload bool) error {
	if reload {
		if err := a.stop(ctx); err != nil {
			a.o.Logger.Warn("could not stop the service", "err", err)
		}
	}
	for _, c := range slices.Backward(a.now.Changes) {
		if err := c.restore(a.o.Logger); err != nil {
			return err
		}
	}
	var err error
	if reload {
		if err = a.reload(ctx); err != nil {
			err = fmt.Errorf("the files are restored, but the reload failed: %w", err)
		}
	}
	var names []string // ends with the journal
	for _, c := range a.now.Changes {
		if names = append(names, unfinished(c.File)); c.Copy != "" {
			names = append(names, c.Copy, unfinished(c.Copy))
		}
	}
	for _, name := range append(names, unfinished(a.journal()), a.journal()) {
		if gone := os.Remove(name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			return errors.Join(err, gone)
		}
	}
	for _, dir := range slices.Backward(a.now.Folders) {
		_ = os.Remove(dir) // fails if the folder contains other files
	}
	return err
}

// broken returns the error for a configuration that is broken before any change, or that does not
// exist.
func broken(err error, file string) error {
	if errors.Is(err, exec.ErrNotFound) {
		return err
	}
	if _, gone := os.Stat(file); errors.Is(gone, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s: %w; create it, or insert the output of millrace snippet into your configuration", millrace.ErrNotFound, file, err)
	}
	return millrace.Coded("config-broken", fmt.Errorf("the current configuration is broken: %w; repair it first", err))
}

// mark ends each inserted line.
const mark = " # millrace up --undo removes this line"

// unfinished returns the name of the temporary file that remains if the process ends during a
// write.
func unfinished(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".new-0")
}

// restore restores one file. If the file was edited after the change, restore only removes the
// inserted text. It does not remove an edited new file.
func (c *change) restore(log *slog.Logger) error {
	is, err := os.ReadFile(c.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	sum := sha256.Sum256(is)
	same := hex.EncodeToString(sum[:]) == c.Sum
	if c.Copy == "" {
		if !same {
			log.Warn("file was edited; keeping it", "path", c.File)
			return nil
		}
		return os.Remove(c.File)
	}
	was, err := os.ReadFile(c.Copy)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !same && !bytes.Contains(is, []byte(mark)):
		return nil // the run ended before the copy was written
	case err != nil:
		return err
	case bytes.Equal(is, was):
		return nil
	case same:
		return write(c.File, was)
	}
	for _, text := range c.Inserted {
		is = bytes.ReplaceAll(is, []byte(text), nil)
	}
	if !bytes.Contains(is, []byte(mark)) {
		return write(c.File, is)
	}
	return fmt.Errorf("%s: %w: the file was edited; restore it from %s by hand, and remove the lines of millrace", c.File, millrace.ErrConflict, c.Copy)
}
