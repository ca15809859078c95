package origin_test

import (
	"fmt"

	"github.com/millrace/millrace/origin"
	"github.com/millrace/millrace/origin/all"
)

// Example opens a folder of HTML with its origin.
func Example() {
	way := all.ByName("folder")
	s, err := way.Open("testdata/site", &origin.Options{Base: "https://example.com/"})
	fmt.Println(way.Title, err, s.Close())
	// Output: a folder of HTML <nil> <nil>
}
