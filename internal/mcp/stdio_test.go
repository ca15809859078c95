package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestStdio(t *testing.T) {
	s := New(mills(t), nil)
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Run(t.Context(), toServer, fromServer) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := asked[sitesOut](t, c, "list_sites", nil); len(out.Sites) != 2 {
		t.Errorf("%+v", out)
	}
	go func() { _, _ = io.Copy(io.Discard, toClient) }()
	_ = fromClient.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("the server runs without a client")
	}
}

func TestHostileLines(t *testing.T) {
	hello := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n"
	for name, q := range map[string]struct {
		in   string
		fail bool
	}{
		"nothing":            {"", false},
		"a hello":            {hello, false},
		"no JSON":            {hello + "hello\n", true},
		"a long line":        {hello + `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 2*maxLine) + "\"}}\n", true},
		"an incomplete line": {hello + `{"jsonrpc":"2.0","id":1,"me`, true},
		"before hello":       {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n", false},
		"null as a map":      {hello + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":null}}` + "\n", false},
		"no parameters":      {hello + `{"jsonrpc":"2.0","id":1,"method":"tools/call"}` + "\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			out := new(bytes.Buffer)
			done := make(chan error, 1)
			go func() { done <- New(mills(t), nil).Run(t.Context(), strings.NewReader(q.in), out) }()
			select {
			case err := <-done:
				if (err != nil) != q.fail {
					t.Errorf("%v", err)
				}
			case <-time.After(5 * time.Minute):
				t.Fatal("the server does not end")
			}
			// Standard output contains only messages of the protocol.
			for l := range strings.Lines(out.String()) {
				if !json.Valid([]byte(l)) || !strings.Contains(l, `"jsonrpc":"2.0"`) {
					t.Errorf("%q is not a message", l)
				}
			}
		})
	}
}
