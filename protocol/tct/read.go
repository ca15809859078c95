package tct

import (
	"cmp"
	"net/http"

	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/recent"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
)

// tctReader reads the lists and the documents of a site. It is safe for concurrent
// use.
type tctReader struct {
	kit.Reader
	d      *draft
	policy kit.Policy
	listed recent.Values
}

// newReader returns a reader of the site at endpoint, which may be any URL of the site. If client
// is nil, the reader uses the guarded default client. Nil options mean the zero value.
func (d *draft) newReader(client *http.Client, endpoint string, o *protocol.ReaderOptions) *tctReader {
	r := &tctReader{d: d, Reader: kit.NewReader(d.Name, client, endpoint, new(kit.Value(o)))}
	r.policy = kit.Policy{Reader: &r.Reader, URLs: r.candidates(policyName), Types: mediaType, Limit: policy.MaxSize, Names: policy.TCTNames, Decode: r.decodePolicy}
	r.Options.MaxList = cmp.Or(r.Options.MaxList, 100<<20)
	return r
}
