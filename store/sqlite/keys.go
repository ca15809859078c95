package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// keyTable has the keys. They belong to the file, not
// to one of its sites.
const keyTable = `
CREATE TABLE access_key (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	name    TEXT NOT NULL,
	hash    BLOB NOT NULL UNIQUE,
	rights  TEXT NOT NULL,    -- separated by spaces
	created INTEGER NOT NULL, -- Unix s
	expires INTEGER NOT NULL, -- Unix s, 0 = never
	revoked INTEGER NOT NULL  -- Unix s, 0 = it is not
);
CREATE UNIQUE INDEX access_key_name ON access_key (name) WHERE revoked = 0;
`

// keys is the Keys of a store.
type keys struct{ *Store }

// Keys returns the keys that the store keeps.
func (s *Store) Keys() store.Keys { return keys{s} }

// Add implements [store.Keys].
func (s keys) Add(ctx context.Context, k store.Key) error {
	if err := k.Validate(); err != nil {
		return err
	}
	rights := make([]string, 0, len(k.Rights))
	for _, r := range k.Rights {
		if !slices.Contains(rights, string(r)) {
			rights = append(rights, string(r))
		}
	}
	err := s.writer.do(ctx, func(t *tx) error {
		var n int
		if err := t.row("SELECT count(*) FROM access_key WHERE name = ? AND revoked = 0 OR hash = ?", []any{k.Name, k.Hash[:]}, &n); err != nil {
			return err
		}
		if n > 0 {
			return fmt.Errorf("%w: there is one of this name: revoke it first, or choose another name", millrace.ErrConflict)
		}
		return t.exec("INSERT INTO access_key (name, hash, rights, created, expires, revoked) VALUES (?, ?, ?, ?, ?, 0)",
			k.Name, k.Hash[:], strings.Join(rights, " "), s.now().Unix(), seconds(k.Expires))
	})
	return explain("key "+k.Name, err)
}

// List implements [store.Keys].
func (s keys) List(ctx context.Context) ([]store.Key, error) {
	var list []store.Key
	err := s.read.rows(ctx, "SELECT name, hash, rights, created, expires, revoked FROM access_key ORDER BY name, id", nil, func(scan scanner) error {
		var k store.Key
		var hash []byte
		var rights string
		var created, expires, revoked int64
		if err := scan(&k.Name, &hash, &rights, &created, &expires, &revoked); err != nil {
			return err
		}
		if len(hash) != len(k.Hash) {
			return fmt.Errorf("%w: the key %s is damaged", millrace.ErrInvalid, k.Name)
		}
		copy(k.Hash[:], hash)
		for r := range strings.FieldsSeq(rights) {
			k.Rights = append(k.Rights, millrace.Right(r))
		}
		k.Created, k.Expires, k.Revoked = moment(created), moment(expires), moment(revoked)
		list = append(list, k)
		return nil
	})
	return list, explain("keys of store "+s.path, err)
}

// Revoke implements [store.Keys].
func (s keys) Revoke(ctx context.Context, name string) error {
	err := s.writer.do(ctx, func(t *tx) error {
		n, err := t.count("UPDATE access_key SET revoked = ? WHERE name = ? AND revoked = 0", s.now().Unix(), name)
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: there is none of this name that is not revoked", millrace.ErrNotFound)
		}
		return err
	})
	return explain("key "+name, err)
}

// seconds and moment keep a time as whole seconds, 0 for none.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	// Not 0, whatever the time: that would be for ever.
	return max(1, t.Unix())
}

func moment(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}
