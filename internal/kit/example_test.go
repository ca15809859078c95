package kit_test

import (
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
)

func ExampleTitle() {
	p := &millrace.Page{Blocks: []millrace.Block{{Type: millrace.HeadingBlock, Text: "Opening hours"}}}
	fmt.Println(kit.Title(p, "https://example.com/hours"))
	fmt.Println(kit.Title(&millrace.Page{}, "https://example.com/caf%C3%A9"))
	// Output:
	// Opening hours
	// café
}
