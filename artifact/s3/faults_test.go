package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/s3server"
)

// TestRealRights checks the error codes for missing permissions, wrong credentials and unknown
// buckets.
func TestRealRights(t *testing.T) {
	s := server(t)
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	open(t, s.URL("bucket", "p"), "owner")
	policy := func(key string, actions ...string) string {
		var allowed []string
		for _, a := range actions {
			resource := "arn:aws:s3:::bucket/*"
			if a == "ListBucket" {
				resource = "arn:aws:s3:::bucket"
			}
			allowed = append(allowed, fmt.Sprintf(`{"Effect":"Allow","Principal":{"AWS":[%q]},"Action":"s3:%s","Resource":%q}`, key, a, resource))
		}
		return `{"Version":"2012-10-17","Statement":[` + strings.Join(allowed, ",") + `]}`
	}
	for want, actions := range map[string][]string{
		"":                         {"ListBucket", "GetObject", "PutObject", "DeleteObject"},
		"bucket-permission write":  {"ListBucket", "GetObject"},
		"bucket-permission list":   {"PutObject", "GetObject", "DeleteObject"},
		"bucket-permission read":   {"ListBucket", "PutObject", "DeleteObject"},
		"bucket-permission delete": {"ListBucket", "GetObject", "PutObject"},
	} {
		code, what, _ := strings.Cut(want, " ")
		user := "user-" + what
		if err := errors.Join(s.AddUser(t.Context(), user, "secret-of-a-user"), client.SetBucketPolicy(t.Context(), "bucket", policy(user, actions...))); err != nil {
			t.Fatal(err)
		}
		t.Setenv("AWS_ACCESS_KEY_ID", user)
		t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-a-user")
		st, err := Open(t.Context(), s.URL("bucket", "p"), "owner", filepath.Join(t.TempDir(), "cache"), nil)
		if err == nil {
			err = st.Put(t.Context(), "a", strings.NewReader("x"))
			if what == "delete" { // only cleaning needs this permission
				err = st.bucket.remove(t.Context(), []string{"log/0000000000000001"})
			}
			st.Close()
		}
		if millrace.ErrorCode(err) != code && (err != nil || code != "") {
			t.Errorf("%s: %v with the code %s", want, err, millrace.ErrorCode(err))
		}
	}
	for want, set := range map[string]map[string]string{
		"bucket-credentials": {"AWS_SECRET_ACCESS_KEY": "wrong"},
		"bucket-absent":      {"bucket": "absent"},
	} {
		t.Setenv("AWS_ACCESS_KEY_ID", s3server.Key)
		t.Setenv("AWS_SECRET_ACCESS_KEY", s3server.Secret)
		bucket := "bucket"
		for name, value := range set {
			if name == "bucket" {
				bucket = value
			}
			t.Setenv(name, value)
		}
		if _, err := Open(t.Context(), s.URL(bucket, "p"), "owner", filepath.Join(t.TempDir(), "cache"), nil); millrace.ErrorCode(err) != want {
			t.Errorf("%s: %v with the code %s", want, err, millrace.ErrorCode(err))
		}
	}
}

// TestRealStops checks that a server that stops and starts loses no Put or Batch that has returned,
// and that batches are complete, also for another process.
func TestRealStops(t *testing.T) {
	s := server(t)
	url := s.URL("bucket", "stops")
	one, two := open(t, url, "owner"), open(t, url, "owner")
	const members = 5
	content := func(n, i int) string { return strings.Repeat(fmt.Sprint(n, " ", i, "\n"), 50_000*(i%2)+1) } // some artifacts are large
	name := func(n, i int) string { return fmt.Sprintf("batch/%08d/%d", n, i) }
	ctx, cancel := context.WithCancel(t.Context())
	confirmed := make(map[int]bool)
	progress := make(chan struct{}, 1) // a batch was confirmed
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			err := one.Batch(ctx, func(ctx context.Context) error {
				for i := range members {
					if err := one.Put(ctx, name(n, i), strings.NewReader(content(n, i))); err != nil {
						return err
					}
				}
				return nil
			})
			if confirmed[n] = err == nil; err != nil && ctx.Err() == nil && !errors.Is(err, millrace.ErrUnavailable) {
				t.Errorf("batch %d: %v", n, err)
				cancel()
			}
			if confirmed[n] {
				select {
				case progress <- struct{}{}:
				default:
				}
			} else {
				<-time.After(5 * time.Millisecond)
				one.bucket.mu.Lock() // the next request must not wait
				one.bucket.rest = time.Time{}
				one.bucket.mu.Unlock()
			}
		}
	})
	rng := rand.New(rand.NewPCG(46, 1))
	for range 8 {
		for range 2 { // the first may be from before the last stop
			select {
			case <-progress:
			case <-ctx.Done():
			}
		}
		<-time.After(time.Duration(rng.IntN(150)) * time.Millisecond)
		s.Stop()
		<-time.After(time.Duration(rng.IntN(50)) * time.Millisecond)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	writing.Wait()
	two.bucket.rest = time.Time{}
	found := make(map[string]int)
	for info, err := range two.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		found[info.Name[:len("batch/00000000")]]++
	}
	whole := 0
	for n, ok := range confirmed {
		switch got := found[name(n, 0)[:len("batch/00000000")]]; {
		case got == members:
			whole++
			for i := range members {
				if b, err := get(t, two, name(n, i)); err != nil || b != content(n, i) {
					t.Errorf("%s: %d bytes, %v", name(n, i), len(b), err)
				}
			}
		case got > 0 || ok:
			t.Errorf("batch %d, confirmed %v: %d of %d artifacts", n, ok, got, members)
		}
	}
	t.Logf("%d of %d batches", whole, len(confirmed))
}
