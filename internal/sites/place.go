package sites

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace"
)

// Place is where millrace runs, relative to the site's own server. Documents describe only what
// works in that place.
type Place string

// Values of Place.
const (
	Alongside  Place = "alongside"  // the site's server serves the pages, and asks millrace about each request
	Front      Place = "front"      // millrace passes requests for pages on to the site's server
	Standalone Place = "standalone" // no other server is involved
)

// PlaceOf returns the configured place. If configured is empty, the place is Front if origin is
// set, else Alongside if source is the URL of a site, else Standalone. An error wraps
// [millrace.ErrInvalid].
func PlaceOf(configured Place, source, origin string) (Place, error) {
	switch {
	case configured == Front && origin == "":
		return "", fmt.Errorf("place %s: %w: it needs origin, the URL of the site's own server", configured, millrace.ErrInvalid)
	case configured != "" && configured != Front && origin != "":
		return "", fmt.Errorf("place %s: %w: with origin %s, the place is %s; omit one of them", configured, millrace.ErrInvalid, origin, Front)
	case configured != "":
		return configured, nil
	case origin != "":
		return Front, nil
	}
	// URLs with other schemes are those of stores, such as postgres://db/mirror.
	if scheme, _, ok := strings.Cut(source, "://"); ok && (strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http")) {
		return Alongside, nil
	}
	return Standalone, nil
}
