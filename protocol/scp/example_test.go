package scp_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace/protocol/scp"
)

const file = `{"collection":{"id":"id-1","section":"blog","type":"snapshot","generated":"2026-11-21T08:54:18.581313Z","version":"0.1","checksum":"sha256:be42285adede447d7486bd0ad029c2a4634ca5f129f74f422ac11165b21cd15c"}}
{"url":"https://example.com/","title":"T","description":"D","modified":"2025-01-15T10:00:00Z","language":"en","content":[{"type":"text","text":"x"}]}`

func ExampleOpen() {
	c, _ := scp.Open(strings.NewReader(file), int64(len(file)), nil)
	result, err := c.Verify(context.Background())
	fmt.Println(c.Metadata().Section, result.Checksum, result.Pages, err)
	for page, err := range c.Pages(context.Background()) {
		fmt.Println(page.URL, page.Title, err)
	}
	// Output:
	// blog cut 1 <nil>
	// https://example.com/ T <nil>
}
