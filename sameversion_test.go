package millrace_test

import (
	"testing"

	"github.com/millrace/millrace"
)

// Entity tags compare weakly. Affixes that servers and proxies add are ignored.
func TestSameVersion(t *testing.T) {
	t.Parallel()
	for _, v := range []string{`"sha256-ab"`, `W/"sha256-ab"`, `"ab"`, `sha256-ab`, `ab`, `"sha256-ab-gzip"`, `W/"sha256-ab-br"`, `W/"ab"`} {
		if !millrace.SameVersion(`"sha256-ab"`, v) || !millrace.SameVersion(v, `"sha256-ab"`) {
			t.Errorf("%s is not the same version", v)
		}
	}
	for _, v := range []string{"", `""`, `"sha256-ac"`, `w/"sha256-ab"`, `"sha512-ab"`, `"sha256-ab-pages"`} {
		if millrace.SameVersion(`"sha256-ab"`, v) || millrace.SameVersion(v, `"sha256-ab"`) {
			t.Errorf("%s is the same version", v)
		}
	}
	if millrace.SameVersion("", "") || millrace.SameVersion("", `""`) {
		t.Error("two empty validators are the same version")
	}
}
