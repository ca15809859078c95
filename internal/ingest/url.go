package ingest

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// urlError is the error for a text that is not the URL of a site.
type urlError struct{ code, text string }

func (e *urlError) Error() string     { return e.text }
func (e *urlError) ErrorCode() string { return e.code }

// Unwrap returns [millrace.ErrInvalid].
func (e *urlError) Unwrap() error { return millrace.ErrInvalid }

// URL returns the canonical form of a URL that a user has typed. Its errors do not contain user
// names or passwords.
func URL(raw string) (string, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return "", &urlError{"bad-url", fmt.Sprintf("%q is not a URL; start with http:// or https://", raw[strings.LastIndexByte(raw, '@')+1:])}
	}
	u, err := canon.URL(raw)
	if err == nil {
		return u, nil
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	at := strings.LastIndexByte(rest, '@')
	switch hostPath := rest[at+1:]; {
	case strings.Contains(authority, "@"):
		return "", &urlError{"url-credentials", fmt.Sprintf("%s://%.100s: URL with a user name or password; remove them", scheme, hostPath)}
	case at >= 0: // with a slash in the password, the rest looks like a path
		err = fmt.Errorf("URL \"%s://…@%.100s\": %w", scheme, hostPath, errors.Unwrap(err))
	}
	return "", err
}

// host matches a host name with an optional port and path.
var host = regexp.MustCompile(`^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+([A-Za-z]{2,})(?::\d+)?(?:/.*)?$`)

// fileEndings are the extensions that mark a name as a file name, even if the file does not exist.
var fileEndings = strings.Fields("csv db gz htm html json jsonl log md opml tsv txt xhtml xml yaml yml")

// Source returns the source that a user has typed. If it is the name of a host, and not of a file
// or folder, Source returns its URL with https.
func Source(raw string) string {
	m := host.FindStringSubmatch(raw)
	if m == nil || slices.Contains(fileEndings, strings.ToLower(m[1])) {
		return raw
	}
	if _, err := os.Lstat(raw); !errors.Is(err, fs.ErrNotExist) {
		return raw
	}
	if !strings.Contains(raw, "/") {
		raw += "/"
	}
	return "https://" + raw
}

// Folder returns the URL's folder: the URL itself if its last segment has no ".", else
// the folder of the file.
func Folder(raw string) (string, error) {
	u, err := URL(raw)
	if err != nil {
		return "", err
	}
	u, _, _ = strings.Cut(u, "?")
	last := u[strings.LastIndexByte(u, '/')+1:]
	switch {
	case last == "":
		return u, nil
	case strings.Contains(last, "."):
		return strings.TrimSuffix(u, last), nil
	}
	return u + "/", nil
}

// Root returns the root of the origin of a URL.
func Root(raw string) (string, error) {
	u, err := URL(raw)
	if err != nil {
		return "", err
	}
	root, err := url.Parse(u)
	if err != nil {
		return "", err
	}
	return root.Scheme + "://" + root.Host + "/", nil
}
