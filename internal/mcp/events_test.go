package mcp

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/store"
)

// events receives the events of a gateway.
type events chan store.Event

func (e events) Record(one store.Event) { e <- one }

// A call causes the same event as any other request for the same content.
func TestEvents(t *testing.T) {
	table, err := bots.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	recorded := make(events, 1)
	url := listen(t, New(mills(t), nil), gateway.Options{Events: recorded, Access: access.Options{Bots: table}, ServiceName: "mcp"})
	for _, tt := range []struct {
		method, tool string
		args         map[string]any
		want         store.Event
	}{
		{"ping", "", nil, store.Event{Endpoint: store.EndpointDiscovery, Path: Path}},
		{"tools/call", "list_sites", nil, store.Event{Endpoint: store.EndpointDiscovery, Path: Path}},
		{"tools/call", "search", map[string]any{"query": "undershot wheel"}, store.Event{Endpoint: store.EndpointSearch, Path: Path, Query: "undershot wheel", Results: 2}},
		{"tools/call", "search", map[string]any{"query": "zyzzyva"}, store.Event{Endpoint: store.EndpointSearch, Path: Path, Query: "zyzzyva"}},
		{"tools/call", "read_page", map[string]any{"url": mill + "wheels/"}, store.Event{Endpoint: store.EndpointFetch, Path: "/wheels/"}},
		{"tools/call", "list_changes", map[string]any{"site": mill}, store.Event{Endpoint: store.EndpointIndex, Path: Path, Results: 2}},
	} {
		body, err := json.Marshal(map[string]any{
			"jsonrpc": "2.0", "id": 1, "method": tt.method, "params": map[string]any{"name": tt.tool, "arguments": tt.args},
		})
		if err != nil {
			t.Fatal(err)
		}
		status, _, reply := post(t, url, string(body), "User-Agent", "Claude-User/1.0")
		got := <-recorded
		if got.Bytes != int64(len(reply)) || got.Status != status || got.Took <= 0 {
			t.Errorf("%s %s: %d with %d bytes causes the event %+v", tt.method, tt.tool, status, len(reply), got)
		}
		tt.want.Bot, tt.want.Family, tt.want.Protocol, tt.want.Status = "Claude-User", "anthropic", "mcp", 200
		got.Time, got.Took, got.Bytes = time.Time{}, 0, 0
		if got != tt.want {
			t.Errorf("%s %s %v:\n%+v, want\n%+v", tt.method, tt.tool, tt.args, got, tt.want)
		}
	}
}
