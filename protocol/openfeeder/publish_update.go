package openfeeder

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
)

// Maximum number of URLs in an update, and maximum size of its body in bytes.
const (
	maxUpdate = 1000
	maxBody   = 1 << 20
)

// update handles a site's report of changed or deleted pages:
// {"action":"upsert"|"delete","urls":[…]}. The response is
// {"schema","action","accepted","added","updated","deleted","unchanged"}. All URLs are validated
// before any change is made.
func (p *publisher) update(w http.ResponseWriter, r *http.Request, live millrace.Live) error {
	v, err := live.View()
	if err != nil {
		return err
	}
	action, urls, err := parseUpdate(v.Site(), r)
	if err != nil {
		return err
	}
	done, err := live.Update(r.Context(), urls, action == "delete")
	if errors.Is(err, millrace.ErrUnavailable) {
		return fmt.Errorf("%s: update: %w: %w", Name,
			refuse(http.StatusServiceUnavailable, serverError, "Updates of single pages are not supported, or are temporarily unavailable."), err)
	}
	if err != nil {
		return fmt.Errorf("%s: update: %w", Name, err)
	}
	b := member([]byte{'{'}, "schema", schema)
	b = member(b, "action", action)
	b = number(b, "accepted", len(urls))
	b = number(b, "added", done.Added)
	b = number(b, "updated", done.Updated)
	b = number(b, "deleted", done.Deleted)
	b = append(number(b, "unchanged", done.Unchanged), '}')
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h[versionHead] = []string{version}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(b) // the update is complete even if the client has disconnected
	return nil
}

// parseUpdate parses the body of an update. The URLs are canonical, absolute and distinct.
func parseUpdate(site millrace.Site, r *http.Request) (action string, urls []string, err error) {
	wrong := func(text string) error { return refuse(http.StatusBadRequest, invalidParam, text) }
	var given []string
	in := jsonio.NewReader(r.Body, &jsonio.Limits{Size: maxBody, Depth: 4, Count: maxUpdate})
	for name, err := range in.Members() {
		if err == nil {
			switch name {
			case "action":
				err = in.Decode(&action)
			case "urls":
				err = in.Decode(&given)
			default:
				return "", nil, wrong("The body has an unknown member: " + quote(name) + ".")
			}
		}
		if tooLarge := (*http.MaxBytesError)(nil); errors.Is(err, millrace.ErrTooLarge) || errors.As(err, &tooLarge) {
			return "", nil, refuse(http.StatusRequestEntityTooLarge, invalidParam, fmt.Sprintf("The body is longer than %d bytes.", maxBody))
		}
		if f, ok := errors.AsType[*millrace.FormatError](err); ok {
			return "", nil, wrong("The body is not valid JSON of an update: " + f.Error() + ".")
		}
		if err != nil {
			return "", nil, err
		}
	}
	switch {
	case action != "upsert" && action != "delete":
		return "", nil, wrong(`action must be "upsert" or "delete", not ` + quote(action) + ".")
	case len(given) == 0 || len(given) > maxUpdate:
		return "", nil, wrong(fmt.Sprintf("urls must be a list of 1 to %d URLs, not %d.", maxUpdate, len(given)))
	}
	seen := map[string]bool{}
	for _, s := range given {
		u, err := parseURL(site, s)
		if err != nil {
			return "", nil, err
		}
		if !seen[u] {
			seen[u] = true
			urls = append(urls, u)
		}
	}
	return action, urls, nil
}
