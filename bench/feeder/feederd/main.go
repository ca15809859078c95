// Command feederd serves a site in OpenFeeder for the benchmarks. Its argument is a
// [feeder.Task] in JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/millrace/millrace/bench/feeder"
)

func main() {
	var t feeder.Task
	err := json.Unmarshal([]byte(os.Args[1]), &t)
	if err == nil {
		if t.Memory == 0 { // like `millrace serve`
			debug.SetGCPercent(400)
			debug.SetMemoryLimit(104 << 20)
		} else {
			debug.SetMemoryLimit(int64(t.Memory) << 20)
		}
		err = t.Serve(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "feederd:", err)
		os.Exit(1)
	}
}
