package postgres_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/postgres"
)

func Example() {
	_, err := postgres.Open(context.Background(), "postgres://millrace@db.example/site?sslmode=maybe", nil)
	fmt.Println(millrace.ErrorCode(err), err)
	// Output: store-dsn store postgres://millrace@db.example/site: invalid: malformed DSN: failed to configure TLS (sslmode is invalid)
}
