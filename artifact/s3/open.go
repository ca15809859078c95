package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

// Options configures [Open].
type Options struct {
	// CacheBytes is the maximum size of the cache in bytes, unless the URL sets one. If it is zero,
	// the maximum is 1 GiB.
	CacheBytes int64
	// Logger receives messages about the bucket. If nil, they are discarded.
	Logger *slog.Logger
}

// Store is an [artifact.Store] and an [artifact.Batcher].
type Store struct {
	bucket *bucket
	cache  *cache
	log    *slog.Logger
	owner  string
	loads  singleflight.Group // downloads of objects into the cache
	ctx    context.Context    // context of loads; Close cancels it
	cancel context.CancelFunc

	turn      chan struct{} // a channel used as a lock: its token is held while the log is read or written; guards the fields below
	claimed   bool
	written   uint64    // number of the newest state in the bucket known to this process
	unwritten int       // bytes of the log since that state
	writing   string    // ID of the entry that is being written; "" after the entry was applied
	deleted   bool      // artifacts were deleted since the last cleaning
	cleaned   time.Time // time of the last cleaning by this process

	mu     sync.RWMutex // guards the fields below against readers; held briefly
	state  state
	synced time.Time // time at which the log was last read to its end
}

var _ artifact.Batcher = (*Store)(nil)

// Open opens the store at a URL such as
// "s3://bucket/prefix?endpoint=https://host&region=us-east-1". cache is the folder of its cache,
// which Open creates; the parent folder must exist. Credentials come from the environment variables
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or from the profile AWS_PROFILE
// in the file AWS_SHARED_CREDENTIALS_FILE. owner identifies the page store to which the artifacts
// belong. A location has only one owner. If the bucket is down, Open opens the store with the
// cached artifacts.
//
// If the URL is invalid or the server lacks a required feature, Open returns ErrInvalid. If the
// credentials are wrong or lack a permission, it returns ErrForbidden. If the location has another
// owner, it returns ErrConflict. If the bucket does not exist or does not respond, it returns
// ErrUnavailable. The methods of a Store also return ErrForbidden, ErrConflict and ErrUnavailable.
// [millrace.ErrorCode] distinguishes the causes.
func Open(ctx context.Context, url, owner, cache string, o *Options) (*Store, error) {
	l, err := parse(url)
	if err != nil {
		return nil, err
	}
	if o == nil {
		o = new(Options)
	}
	s := &Store{log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), owner: owner, turn: make(chan struct{}, 1), state: state{Names: make(map[string]position)}}
	if s.bucket, err = newBucket(l, s.log); err != nil {
		return nil, err
	}
	// Each location and owner has its own folder, because objects of different locations have the
	// same names.
	of := sha256.Sum256([]byte(owner + " " + l.endpoint.String() + " " + l.bucket + "/" + l.prefix))
	if s.cache, err = openCache(filepath.Join(cache, hex.EncodeToString(of[:8])), cmp.Or(l.cacheBytes, o.CacheBytes, 1<<30)); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err = s.refresh(ctx, 0); millrace.ErrorCode(err) == "bucket-down" && s.loadCached() {
		err = nil
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends downloads and closes the cache.
func (s *Store) Close() error {
	s.cancel()
	return s.cache.root.Close()
}

// format is the version of the format of objects.
const format = 1

// ownerRecord is the content of the object "owner".
type ownerRecord struct {
	Store  string `json:"store"`
	Format int    `json:"format"`
}

// claim makes owner the owner of the location, or returns an error if the location has another
// owner.
func (s *Store) claim(ctx context.Context) error {
	raw, err := json.Marshal(ownerRecord{s.owner, format})
	if err != nil {
		return err
	}
	create := func() error { return s.bucket.create(ctx, ownerObject, bytes.NewReader(raw)) }
	if err = create(); err == nil {
		if err = create(); err == nil {
			return millrace.Coded("bucket-unsupported", fmt.Errorf("artifacts in %s: %w: the server ignores If-None-Match, which several processes require; use another server", s.bucket, millrace.ErrInvalid))
		}
	}
	if !errors.Is(err, errExists) {
		return err
	}
	var b bytes.Buffer
	if err := s.bucket.get(ctx, ownerObject, 0, -1, &b); err != nil {
		return err
	}
	var is ownerRecord
	if err := json.Unmarshal(b.Bytes(), &is); err == nil && is.Store == s.owner && is.Format > format {
		return millrace.Coded("bucket-newer", fmt.Errorf("artifacts in %s: %w: a newer version of millrace has written them; upgrade this version", s.bucket, millrace.ErrConflict))
	} else if err != nil || is.Store != s.owner {
		return millrace.Coded("bucket-owner", fmt.Errorf("artifacts in %s: %w: they belong to another store of pages (%.40q); use another prefix, or delete %s if that store is gone", s.bucket, millrace.ErrConflict, is.Store, s.bucket.prefix+ownerObject))
	}
	return nil
}
