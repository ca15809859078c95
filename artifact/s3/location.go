package s3

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
)

// Scheme is the prefix of the URLs that [Open] accepts.
const Scheme = "s3://"

// location is the location of a store.
type location struct {
	bucket, prefix string // prefix is "" or ends in "/"
	endpoint       *url.URL
	region         string
	cacheBytes     int64
}

// minCacheBytes is the minimum size of the cache. It is enough for several objects of the log.
const minCacheBytes = 64 << 20

var validBucket = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// parse parses the URL of a store.
func parse(raw string) (*location, error) {
	invalid := func(format string, args ...any) error {
		return millrace.Coded("bucket-url", fmt.Errorf("artifacts: %w: "+format+"; write s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION", append([]any{millrace.ErrInvalid}, args...)...))
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme+"://" != Scheme {
		return nil, invalid("not a URL of a bucket")
	}
	q, err := url.ParseQuery(u.RawQuery)
	l := &location{bucket: u.Host, prefix: strings.Trim(u.Path, "/"), region: cmp.Or(q.Get("region"), "us-east-1")}
	switch {
	case err != nil || u.Fragment != "":
		return nil, invalid("the query is invalid")
	case u.User != nil:
		return nil, invalid("credentials in the URL are refused, because others can read URLs; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case !validBucket.MatchString(l.bucket):
		return nil, invalid("%q is not the name of a bucket", l.bucket)
	case len(l.prefix) > 500 || strings.ContainsFunc(l.prefix, func(r rune) bool { return r < ' ' || r > '~' }) || strings.Contains("/"+l.prefix+"/", "//") && l.prefix != "":
		return nil, invalid("%.100q is not a prefix", l.prefix)
	}
	if l.prefix != "" {
		l.prefix += "/"
	}
	for name, values := range q {
		if name != "endpoint" && name != "region" && name != "cache" || len(values) != 1 {
			return nil, invalid("unknown or repeated parameter %.40q", name)
		}
	}
	if c := q.Get("cache"); c != "" {
		mb, err := strconv.ParseInt(c, 10, 32)
		if l.cacheBytes = mb << 20; err != nil || l.cacheBytes < minCacheBytes {
			return nil, invalid("cache must be a number of MB of at least %d", minCacheBytes>>20)
		}
	}
	l.endpoint, err = url.Parse(cmp.Or(q.Get("endpoint"), "https://s3."+l.region+".amazonaws.com"))
	if err != nil || l.endpoint.Scheme != "http" && l.endpoint.Scheme != "https" || l.endpoint.Host == "" || l.endpoint.User != nil || strings.Trim(l.endpoint.Path, "/") != "" || l.endpoint.RawQuery != "" {
		return nil, invalid("endpoint must be a URL such as https://s3.example.com, without a path")
	}
	return l, nil
}

// String returns the location without credentials or parameters, for messages.
func (l *location) String() string {
	return Scheme + l.bucket + "/" + strings.TrimSuffix(l.prefix, "/") + " at " + l.endpoint.Host
}
