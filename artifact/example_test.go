package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/artifact/memory"
)

func ExampleTouch() {
	ctx, store := context.Background(), memory.New(nil)
	err := artifact.Touch(ctx, store, "9f86d081")
	fmt.Println("must be made:", errors.Is(err, millrace.ErrNotFound))
	err = store.Put(ctx, "9f86d081", strings.NewReader("test"))
	fmt.Println(err, artifact.Touch(ctx, store, "9f86d081"))
	// Output:
	// must be made: true
	// <nil> <nil>
}
