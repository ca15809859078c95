package openfeeder_test

import (
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/openfeeder"
	"github.com/millrace/millrace/protocol/protocoltest"
)

func TestLaw(t *testing.T) { protocoltest.Run(t, openfeeder.Protocol()) }

// The law also holds for a static feed.
func TestLawStatic(t *testing.T) {
	p := openfeeder.Protocol()
	p.NewPublisher = func(o *protocol.PublisherOptions) millrace.Publisher {
		static := protocol.PublisherOptions{}
		if o != nil {
			static = *o
		}
		static.Static = true
		return openfeeder.NewPublisher(&static)
	}
	protocoltest.Run(t, p)
}

func FuzzProbe(f *testing.F) {
	protocoltest.FuzzProbe(f, openfeeder.Protocol(),
		`{"version":"1.0","feed":{"endpoint":"/f","type":"static"},"schema":"openfeeder/1.0","page":1,"total_pages":9000000000000000000,"items":[{"url":"/a","document":"/a.json"}],"url":"/a","chunks":[],"meta":{"total_chunks":9000000000000000000}}`, `{"version":"1.0","feed":{"endpoint":"/f","type":"paginated"},"schema":"openfeeder/1.0","total_pages":9000000000000000000,"items":[{"url":"/a"}],"url":"/a","chunks":[],"meta":{"total_chunks":9000000000000000000},"sync":{"sync_token":"a"}}`)
}
