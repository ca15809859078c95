package s3_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact/s3"
)

func Example() {
	// The credentials are in the environment, never in the URL.
	_, err := s3.Open(context.Background(), "s3://key:secret@bucket/prefix", "store-1", "cache", nil)
	fmt.Println(millrace.ErrorCode(err))
	// Output: bucket-url
}
