package all_test

import (
	"fmt"

	"github.com/millrace/millrace/protocol/all"
)

func ExampleProtocols() {
	for _, p := range all.Protocols() {
		fmt.Printf("%s: %s, %s of %s\n", p.Name, p.Title, p.Version, p.Date)
	}
	// Output:
	// scp: Site Content Protocol (SCP), 0.1 of 2025-11-14
	// tct-01: The Collaboration Tunnel Protocol (TCT), draft-jurkovikj-collab-tunnel-01 of 2025-11-14
}
