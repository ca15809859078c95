package wordpress

import (
	"net/http"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/origin/origintest"
)

func TestOrigin(t *testing.T) {
	origintest.Run(t, origintest.Origin{
		New: func(t testing.TB) origintest.Site { return newFake(t) },
		Open: func(_ testing.TB, place string, _ origintest.KnownRefs) (millrace.Source, error) {
			return New(&http.Client{}, place, nil) // the default client would wait after failures
		},
	})
}
