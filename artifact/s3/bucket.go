package s3

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// Limits of requests.
const (
	requestTimeout = 20 * time.Second // time limit of a request, without the time that minRate adds for its bytes
	minRate        = 256 << 10        // a request of n bytes may take n/minRate seconds longer
	attempts       = 2
	headerTimeout  = 10 * time.Second // time limit of the wait for a response header
	restAfter      = time.Second      // after a failed request, all requests fail at once for this time
)

// bucket sends requests for the objects of a store.
type bucket struct {
	*location
	log *slog.Logger

	// These functions use the client. A field of the client's type would link all of its methods
	// into the binary (ADR 40).

	// create creates an object. If the object exists, or another process is creating it, create
	// returns errExists.
	create func(ctx context.Context, object string, r io.ReadSeeker) error
	// open returns a reader for bytes of an object. It returns the errors of the client unchanged.
	// If length is -1, offset must be 0, and the reader returns all bytes.
	open func(ctx context.Context, object string, offset, length int64) (io.ReadCloser, error)
	// list returns the objects whose names begin with a prefix, in the order of their names.
	list func(ctx context.Context, prefix string) ([]object, error)
	// remove deletes objects.
	remove func(ctx context.Context, objects []string) error

	mu   sync.Mutex
	down error     // nil if the bucket responded to the last request, otherwise the error of that request
	rest time.Time // while the bucket is down, time of the next request
}

func newBucket(l *location, log *slog.Logger) (*bucket, error) {
	transport, err := fetch.Upstream(l.endpoint, &fetch.UpstreamOptions{Timeout: headerTimeout})
	if err != nil {
		return nil, err
	}
	transport.ReadBufferSize = 0 // bodies are large
	creds := credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}})
	if v, err := creds.GetWithContext(nil); err != nil || v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return nil, millrace.Coded("bucket-credentials", fmt.Errorf("artifacts in %s: %w: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE", l, millrace.ErrForbidden))
	}
	client, err := minio.New(l.endpoint.Host, &minio.Options{
		Creds: creds, Secure: l.endpoint.Scheme == "https", Transport: transport, Region: l.region,
		BucketLookup: minio.BucketLookupPath, MaxRetries: attempts,
	})
	if err != nil {
		return nil, millrace.Coded("bucket-url", fmt.Errorf("artifacts: %w: %w", millrace.ErrInvalid, err))
	}
	client.SetS3EnableDualstack(false) // send requests to the configured endpoint, not to Amazon's dual-stack endpoint
	b := &bucket{location: l, log: log}
	b.connect(minio.Core{Client: client})
	return b, nil
}

// errExists is the error that create returns if the object exists.
var errExists = fmt.Errorf("object exists: %w", millrace.ErrConflict)

// object describes an object of the bucket.
type object struct {
	name     string // name without the store's prefix
	size     int64
	modified time.Time
}

// connect sets the functions that use the client.
func (b *bucket) connect(client minio.Core) {
	b.create = func(ctx context.Context, object string, r io.ReadSeeker) error {
		hash := sha256.New()
		size, err := io.Copy(hash, r)
		if _, seekErr := r.Seek(0, io.SeekStart); err != nil || seekErr != nil {
			return errors.Join(err, seekErr)
		}
		// Without DisableContentSha256, minio-go 7.4.1 signs the content in parts, and has a data
		// race after a failed request.
		o := minio.PutObjectOptions{ContentType: "application/octet-stream", DisableContentSha256: true}
		o.SetMatchETagExcept("*")
		return b.do(ctx, "write "+object, size, func(ctx context.Context) error {
			_, err := client.PutObject(ctx, b.bucket, b.prefix+object, r, size, "", hex.EncodeToString(hash.Sum(nil)), o)
			return err
		})
	}
	b.open = func(ctx context.Context, object string, offset, length int64) (io.ReadCloser, error) {
		var o minio.GetObjectOptions
		if length >= 0 {
			o.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
		}
		r, _, header, err := client.GetObject(ctx, b.bucket, b.prefix+object, o)
		if got := header.Get("Content-Range"); err == nil && length >= 0 && !strings.HasPrefix(got, fmt.Sprintf("bytes %d-", offset)) {
			return nil, errors.Join(fmt.Errorf("range of the response is %q: %w", got, millrace.ErrInvalid), r.Close())
		}
		return r, err
	}
	b.list = func(ctx context.Context, prefix string) (all []object, err error) {
		err = b.do(ctx, "list "+prefix, 256<<20, func(ctx context.Context) error {
			for info := range client.Client.ListObjects(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true, FetchOwner: new(bool)}) {
				if info.Err != nil {
					return info.Err
				}
				all = append(all, object{info.Key[len(b.prefix):], info.Size, info.LastModified})
			}
			return nil
		})
		return all, err
	}
	b.remove = func(ctx context.Context, objects []string) error {
		return b.do(ctx, "delete objects", 256<<20, func(ctx context.Context) (first error) {
			keys := make(chan minio.ObjectInfo, len(objects))
			for _, o := range objects {
				keys <- minio.ObjectInfo{Key: b.prefix + o}
			}
			close(keys)
			for e := range client.RemoveObjects(ctx, b.bucket, keys, minio.RemoveObjectsOptions{}) {
				first = cmp.Or(first, e.Err)
			}
			return first
		})
	}
}

// do sends a request that transfers size bytes. While the bucket is down, only one request at a
// time is sent; all others fail at once.
func (b *bucket) do(ctx context.Context, what string, size int64, f func(ctx context.Context) error) error {
	limit := requestTimeout + time.Duration(size/minRate)*time.Second
	b.mu.Lock()
	down := b.down
	if time.Now().After(b.rest) {
		down, b.rest = nil, time.Now().Add(limit)
	}
	b.mu.Unlock()
	if down != nil {
		return down
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := b.explain(ctx, what, f(limited))
	isDown := millrace.ErrorCode(err) == "bucket-down"
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case isDown && b.down == nil:
		b.log.WarnContext(ctx, "bucket is down; serving cached artifacts", "err", err)
	case !isDown && b.down != nil && ctx.Err() == nil:
		b.log.InfoContext(ctx, "bucket is up again")
	}
	switch {
	case isDown:
		b.down, b.rest = err, time.Now().Add(restAfter)
	case ctx.Err() != nil:
		b.rest = time.Time{} // the bucket may still be down
	default:
		b.down = nil
	}
	return err
}

// output is a writer that stores a write error, to distinguish it from an error of the bucket.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(b []byte) (n int, err error) {
	n, o.err = o.Writer.Write(b)
	return n, o.err
}

// get writes bytes of an object to w. If length is -1, it writes all bytes to the end. It returns
// an error of w unchanged.
func (b *bucket) get(ctx context.Context, object string, offset, length int64, w io.Writer) error {
	out := &output{Writer: w}
	err := b.do(ctx, "read "+object, max(length, 64<<20), func(ctx context.Context) error {
		r, err := b.open(ctx, object, offset, length)
		if err != nil {
			return err
		}
		defer r.Close()
		if _, err = io.Copy(out, r); out.err != nil {
			return nil
		}
		return err
	})
	return cmp.Or(err, out.err)
}

// stream returns a reader for bytes of an object. The reader is valid until ctx ends.
func (b *bucket) stream(ctx context.Context, object string, offset, length int64) (r io.ReadCloser, err error) {
	err = b.do(ctx, "read "+object, 0, func(context.Context) error {
		r, err = b.open(ctx, object, offset, length)
		return err
	})
	return r, err
}

type explanation struct {
	sentinel error
	code     string
	text     string
}

var (
	login = &explanation{millrace.ErrForbidden, "bucket-credentials", "the bucket refuses the credentials; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the credentials file"}
	down  = &explanation{millrace.ErrUnavailable, "bucket-down", "the bucket does not respond; check the endpoint, and try again"}
	full  = &explanation{millrace.ErrUnavailable, "disk-full", "the bucket is full; raise its quota"}
)

// advice explains S3 errors to operators. Its keys are error codes and statuses.
var advice = map[string]*explanation{
	"AccessDenied":                 {millrace.ErrForbidden, "bucket-permission", "the credentials lack a permission; allow ListBucket, GetObject, PutObject and DeleteObject"},
	"AuthorizationHeaderMalformed": {millrace.ErrInvalid, "bucket-region", "the bucket is in another region; set region in the URL"},
	"PermanentRedirect":            {millrace.ErrInvalid, "bucket-region", "the bucket is in another region; set region and endpoint in the URL"},
	"NoSuchBucket":                 {millrace.ErrUnavailable, "bucket-absent", "the bucket does not exist; create it, or use another one"},
	"NotImplemented":               {millrace.ErrInvalid, "bucket-unsupported", "the server lacks a required feature of S3; use another server"},
	"RequestTimeTooSkewed":         {millrace.ErrUnavailable, "bucket-clock", "the clock of this machine differs from that of the bucket; correct it"},
	"EntityTooLarge":               {millrace.ErrTooLarge, "object-size", "the artifact exceeds the limit of the bucket"},
	"InvalidAccessKeyId":           login,
	"SignatureDoesNotMatch":        login,
	"ExpiredToken":                 login,
	"InvalidToken":                 login,
	"XAdminUserNotFound":           login,
	"QuotaExceeded":                full,
}

// explain adds the operation, advice and a sentinel error to an error of a request.
func (b *bucket) explain(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	what = "artifacts in " + b.location.String() + ": " + what
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	e := down
	if r, ok := errors.AsType[minio.ErrorResponse](err); ok {
		switch e = advice[r.Code]; {
		case e != nil:
		case r.Code == "NoSuchKey" || r.Code == "" && r.StatusCode == http.StatusNotFound:
			return fmt.Errorf("%s: %w", what, millrace.ErrNotFound)
		case r.StatusCode == http.StatusPreconditionFailed, r.StatusCode == http.StatusConflict:
			return fmt.Errorf("%s: %w", what, errExists)
		case r.StatusCode == http.StatusForbidden, r.StatusCode == http.StatusUnauthorized:
			e = advice["AccessDenied"]
		case r.StatusCode == http.StatusInsufficientStorage:
			e = full
		case r.StatusCode == http.StatusNotImplemented:
			e = advice["NotImplemented"]
		case r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500:
			e = down
		default:
			e = advice["NotImplemented"]
		}
		err = fmt.Errorf("%s, status %d: %s", cmp.Or(r.Code, "error"), r.StatusCode, r.Message)
	} else if errors.Is(err, millrace.ErrForbidden) || errors.Is(err, millrace.ErrInvalid) {
		return fmt.Errorf("%s: %w", what, err) // the client refused the address, or has no credentials
	}
	// Use only the text of the error, because a wrapped io.EOF would look like the end of a reader.
	return millrace.Coded(e.code, fmt.Errorf("%s: %w: %s (%s)", what, e.sentinel, e.text, err.Error()))
}
