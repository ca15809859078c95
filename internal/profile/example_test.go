package profile_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/profile"
)

func ExampleAgentReady() {
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	t, _ := check.NewTarget("http://example.com/", site.Client(), nil) // the client connects to the server
	report, _ := check.Run(context.Background(), t, []check.Suite{profile.AgentReady()}, nil)
	fmt.Println(report.Findings[0].Got, "-", report.Findings[0].Fix)
	// Output: no robots.txt - Serve /robots.txt as text/plain with User-agent lines. millrace serve does this.
}
