package all_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/store/all"
)

func Example() {
	st, err := all.Open(context.Background(), all.Memory, nil)
	fmt.Println(err, st.Close())
	// Output: <nil> <nil>
}
