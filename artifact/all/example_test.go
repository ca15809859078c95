package all_test

import (
	"context"
	"fmt"
	"os"

	"github.com/millrace/millrace/artifact/all"
	"github.com/millrace/millrace/store/memory"
)

func Example() {
	folder, _ := os.MkdirTemp("", "artifacts-")
	defer os.RemoveAll(folder)
	s, err := all.Open(context.Background(), folder, "", memory.New(nil).State(), nil)
	fmt.Println(err, s.Close())
	// Output: <nil> <nil>
}
