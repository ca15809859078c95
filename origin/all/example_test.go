package all_test

import (
	"fmt"

	"github.com/millrace/millrace/origin/all"
)

// Example lists the origins in the order in which they are tried.
func Example() {
	for _, o := range all.Origins(false) {
		fmt.Println(o.Name, "is", o.Title)
	}
	// Output:
	// wordpress is WordPress's REST API
	// crawl is a crawl
}
