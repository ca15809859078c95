package all_test

import (
	"fmt"

	"github.com/millrace/millrace/protocol/all"
)

func ExampleProtocols() {
	for _, p := range all.Protocols() {
		fmt.Printf("%s: %s, %s\n", p.Name, p.Title, p.Version)
	}
	// Output:
	// scp: Site Content Protocol (SCP), 0.1
	// tct-03: The Collaboration Content Transfer (TCT) Protocol, draft-jurkovikj-collab-tunnel-03
	// tct-01: The Collaboration Tunnel Protocol (TCT), draft-jurkovikj-collab-tunnel-01
	// tct-00: The Collaboration Tunnel Protocol (TCT), draft-jurkovikj-collab-tunnel-00
	// openfeeder: OpenFeeder, 1.0
	// arc: ARC Sitemap & AI Indexing, 2.1
	// web: Markdown, llms.txt, feeds and sitemaps of the plain web, llms.txt v2
}
