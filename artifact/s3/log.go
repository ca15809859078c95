package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

// Names of objects. Numbers in names have a fixed length, so names sort in numeric order.
const (
	ownerObject = "owner"
	logPrefix   = "log/"
	statePrefix = "state/"
	filePrefix  = "file/"
)

const (
	// If a process has not read the log for reloadAfter, it first looks for a newer state, because
	// unused objects of the log are kept only for keepLog.
	reloadAfter = 15 * time.Minute
	keepLog     = time.Hour
	keepFile    = 24 * time.Hour // a file that no artifact uses is kept for this time, because its batch may still be running
	// A process writes the state after this number of log objects, or after this number of bytes in
	// them.
	stateEvery = 64
	stateBytes = 32 << 20
)

func numbered(prefix string, number uint64) string { return fmt.Sprintf("%s%016d", prefix, number) }

// position locates the bytes of an artifact.
type position struct {
	Object   string `json:"object,omitempty"`
	Offset   int64  `json:"offset,omitempty"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified,omitempty"`
}

func (p *position) info(name string) artifact.Info {
	return artifact.Info{Name: name, Size: p.Size, Modified: time.UnixMilli(p.Modified).UTC()}
}

// Operations on an artifact. The effect of an operation depends only on the operations before it in
// the log.
const (
	opPut    = "put"    // creates the artifact, or touches it if it exists
	opTouch  = "touch"  // renews the time of an artifact, if it exists
	opDelete = "delete" // removes the artifact, if it exists
)

// change is one operation on an artifact.
type change struct {
	Op   string `json:"op"`
	Name string `json:"name"`
	// At locates the bytes for opPut. If it names no object, the bytes follow the first line of the
	// object that contains this change.
	At *position `json:"at,omitempty"`
}

// entry is the first line of an object of the log.
type entry struct {
	ID      string   `json:"id"`   // ID of the attempt to write this object
	Time    int64    `json:"time"` // milliseconds since 1970; later than the time of the previous object
	Changes []change `json:"changes"`
}

// state contains the artifacts after all objects of the log up to a number.
type state struct {
	Number uint64              `json:"number"`
	Time   int64               `json:"time"`
	Names  map[string]position `json:"names"`
}

// apply applies the next object of the log. line is the length of its first line in bytes.
func (s *state) apply(e *entry, line int) {
	s.Number++
	s.Time = e.Time
	for _, c := range e.Changes {
		p, exists := s.Names[c.Name]
		switch {
		case c.Op == opDelete:
			delete(s.Names, c.Name)
			continue
		case c.Op == opPut && !exists && c.At != nil:
			if p = *c.At; p.Object == "" {
				p.Object, p.Offset = numbered(logPrefix, s.Number), p.Offset+int64(line)
			}
		case !exists:
			continue
		}
		p.Modified = e.Time
		s.Names[c.Name] = p
	}
}

// decode decodes the first line of an object, and returns the length of the line.
func decode(name string, raw []byte, v any) (line int, err error) {
	head, _, _ := bytes.Cut(raw, []byte("\n"))
	if err := json.Unmarshal(head, v); err != nil {
		return 0, fmt.Errorf("artifacts: object %s: %w: %w", name, millrace.ErrInvalid, err)
	}
	return len(head) + 1, nil
}

// lock waits until no other goroutine uses the log. The caller must call unlock.
func (s *Store) lock(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) unlock() { <-s.turn }

// refresh reads the log, unless it was read within the last maxAge.
func (s *Store) refresh(ctx context.Context, maxAge time.Duration) error {
	asked := time.Now()
	for locked := false; ; locked = true {
		s.mu.RLock()
		fresh := s.synced.After(asked.Add(-maxAge))
		s.mu.RUnlock()
		switch {
		case fresh && locked:
			s.unlock()
			return nil
		case fresh:
			return nil
		case locked:
			defer s.unlock()
			return s.sync(ctx)
		}
		if err := s.lock(ctx); err != nil {
			return err
		}
	}
}

// sync applies the new objects of the log. The caller holds the lock.
func (s *Store) sync(ctx context.Context) error {
	start := time.Now()
	if !s.claimed {
		if err := s.claim(ctx); err != nil {
			return err
		}
		s.claimed = true
	}
	if start.Round(0).Sub(s.synced.Round(0)).Abs() > reloadAfter { // by the wall clock, which includes time in suspend
		if err := s.load(ctx); err != nil {
			return err
		}
	}
	for {
		name := numbered(logPrefix, s.state.Number+1)
		raw, err := s.pull(ctx, name)
		if errors.Is(err, millrace.ErrNotFound) {
			break
		}
		if err == nil {
			err = s.apply(name, raw)
		}
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = start
	return nil
}

// pull reads a whole object from the bucket and adds it to the cache.
func (s *Store) pull(ctx context.Context, name string) ([]byte, error) {
	var b bytes.Buffer
	err := s.bucket.get(ctx, name, 0, -1, &b)
	if err == nil {
		s.keep(name, b.Bytes())
	}
	return b.Bytes(), err
}

// load replaces the state with the newest state in the bucket, if that one is newer.
func (s *Store) load(ctx context.Context) error {
	all, err := s.bucket.list(ctx, statePrefix)
	if err != nil || len(all) == 0 || all[len(all)-1].name <= numbered(statePrefix, s.state.Number) {
		return err
	}
	newest := all[len(all)-1].name
	raw, err := s.pull(ctx, newest)
	if err != nil {
		return err
	}
	return s.replace(newest, raw)
}

// replace replaces the state with that of an object.
func (s *Store) replace(name string, raw []byte) error {
	next := new(state)
	if _, err := decode(name, raw, next); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.written, s.unwritten = *next, next.Number, 0
	return nil
}

// loadCached restores the state from the cache, and reports whether it found a state or the log there.
func (s *Store) loadCached() bool {
	files, err := s.cache.files()
	newest := ""
	for _, f := range files {
		if strings.HasPrefix(f.Name(), s.cache.file(statePrefix)) {
			newest = max(newest, f.Name())
		}
	}
	if newest != "" && err == nil {
		var raw []byte
		if raw, err = s.cache.read(newest); err == nil {
			err = s.replace(newest, raw)
		}
	}
	for err == nil {
		var raw []byte
		name := numbered(logPrefix, s.state.Number+1)
		if raw, err = s.cache.read(name); err == nil {
			err = s.apply(name, raw)
		}
	}
	return s.state.Number > 0
}

// apply applies the next object of the log. The caller holds the lock.
func (s *Store) apply(name string, raw []byte) error {
	e := new(entry)
	line, err := decode(name, raw, e)
	if err != nil {
		return err
	}
	if s.writing == e.ID {
		s.writing = ""
	}
	s.unwritten += len(raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.apply(e, line)
	return nil
}

// commit appends changes to the log. The caller holds the lock.
func (s *Store) commit(ctx context.Context, changes []change, data []byte) error {
	e := entry{ID: rand.Text(), Changes: changes}
	s.writing = e.ID
	for tries := 0; s.writing != ""; tries++ {
		e.Time = max(time.Now().UnixMilli(), s.state.Time+1)
		head, err := json.Marshal(&e)
		if err != nil {
			return err
		}
		number := s.state.Number + 1
		name, body := numbered(logPrefix, number), slices.Concat(head, []byte("\n"), data)
		err = s.bucket.create(ctx, name, bytes.NewReader(body))
		if err == nil {
			s.keep(name, body)
			return s.apply(name, body)
		}
		if errors.Is(err, errExists) && tries < 100 { // another process or a retry has written the object or is writing it
			err = s.sync(ctx)
		}
		if err == nil && s.state.Number < number {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tidy writes the state after many changes, and deletes unused objects after deletions. It logs its
// errors and does not return them, because the changes have already taken effect. The caller holds
// the lock.
func (s *Store) tidy(ctx context.Context) {
	clean := s.deleted && time.Since(s.cleaned) > keepLog
	if !clean && s.state.Number < s.written+stateEvery && s.unwritten < stateBytes {
		return
	}
	raw, err := json.Marshal(&s.state)
	if name := numbered(statePrefix, s.state.Number); err == nil && s.state.Number > s.written {
		if err = s.bucket.create(ctx, name, bytes.NewReader(raw)); err == nil || errors.Is(err, errExists) {
			s.keep(name, raw)
			s.written, s.unwritten, err = s.state.Number, 0, nil
		}
	}
	if err == nil && clean {
		s.cleaned, s.deleted = time.Now(), false
		err = s.clean(ctx)
	}
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "could not tidy the bucket", "err", err)
	}
}

// clean deletes old objects that no artifact uses, except the newest two states and the log after
// the older of them.
func (s *Store) clean(ctx context.Context) error {
	all, err := s.bucket.list(ctx, "")
	if err != nil {
		return err
	}
	used := make(map[string]bool)
	for _, p := range s.state.Names {
		used[p.Object] = true
	}
	var states []string
	for _, o := range all {
		if strings.HasPrefix(o.name, statePrefix) {
			states = append(states, o.name)
		}
	}
	before := "" // number of the second newest state; slow processes need the log after that state
	if len(states) > 1 {
		before = strings.TrimPrefix(states[len(states)-2], statePrefix)
	}
	var unused []string
	for _, o := range all {
		age := time.Since(o.modified)
		if !used[o.name] && (o.name <= logPrefix+before && strings.HasPrefix(o.name, logPrefix) && age > keepLog ||
			o.name < statePrefix+before && strings.HasPrefix(o.name, statePrefix) && age > keepLog ||
			strings.HasPrefix(o.name, filePrefix) && age > keepFile) {
			unused = append(unused, o.name)
			s.cache.remove(o.name)
		}
	}
	return s.bucket.remove(ctx, unused)
}
