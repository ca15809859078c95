package mcp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/sqlite"
)

// shelf is a library of a store.
type shelf struct {
	t       testing.TB
	store   *sqlite.Store
	names   []string
	sites   map[string]*sqlite.Site
	terms   map[string][]Terms
	indexed atomic.Int64
	clock   time.Time
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	s := &shelf{
		t: t, sites: make(map[string]*sqlite.Site), terms: make(map[string][]Terms),
		clock: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	var err error
	s.store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "shelf.db"), &sqlite.Options{Now: func() time.Time {
		s.clock = s.clock.Add(time.Second)
		return s.clock
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.store.Close() })
	return s
}

func (s *shelf) add(name string) {
	s.t.Helper()
	site, err := s.store.Site(s.t.Context(), name, store.Config{Base: name})
	if err == nil {
		err = site.Derive(s.t.Context(), nil)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.names, s.sites[name] = append(s.names, name), site
}

// apply writes one transaction.
func (s *shelf) apply(name string, changes ...millrace.Change) {
	s.t.Helper()
	if _, err := s.sites[name].Apply(s.t.Context(), "a test", changes); err != nil {
		s.t.Fatal(err)
	}
}

// put makes the change that brings a page.
func put(url, title string, blocks ...millrace.Block) millrace.Change {
	p := &millrace.Page{URL: url, Title: title, Blocks: blocks, Detail: millrace.DetailBlocks, Known: millrace.AllFields}
	return millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: url, Version: p.Revision()}, Page: p}
}

func gone(url string) millrace.Change {
	return millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: url}}
}

func text(s string) millrace.Block { return millrace.Block{Type: millrace.TextBlock, Text: s} }

// Names implements [Library].
func (s *shelf) Names(context.Context) ([]string, error) { return s.names, nil }

// Site implements [Library].
func (s *shelf) Site(ctx context.Context, name string) (*Site, error) {
	site := s.sites[name]
	if site == nil {
		return nil, millrace.ErrNotFound
	}
	v, err := site.Head(ctx)
	if err != nil {
		return nil, err
	}
	return &Site{Name: name, View: v, Terms: s.terms[name]}, nil
}

// Index implements [Indexer].
func (s *shelf) Index(ctx context.Context, name string, progress func(done, total int)) error {
	s.indexed.Add(1)
	return s.sites[name].Index(ctx, progress)
}

const (
	mill  = "https://mill.example/"
	river = "https://river.example/"
)

// mills is a library of two sites.
func mills(t testing.TB) *shelf {
	t.Helper()
	s := newShelf(t)
	s.add(mill)
	s.add(river)
	yes, no := true, false
	s.terms[mill] = []Terms{{Document: mill + "policy.json", Policy: &millrace.Policy{
		Terms: mill + "terms", Requirements: millrace.Requirements{Attribution: true},
		Purposes: map[millrace.Purpose]bool{millrace.AIInput: yes, millrace.AITrain: no},
	}}}
	hidden := put("/hidden", "Hidden", text("The secret undershot wheel of the miller."))
	hidden.Page.Access.NoIndex = true
	wheels := put("/wheels/", "Wheels",
		millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: "Undershot"},
		text("An undershot wheel turns where the water runs below it. It needs little fall."),
		millrace.Block{Type: millrace.CodeBlock, Language: "go", Text: "func turn() {\n\tspin()\n}\n"},
	)
	wheels.Page.Author = "A. Miller"
	s.apply(mill, put("/", "The mill", text("A mill at a river.")), wheels, hidden,
		put("/login", "Log in", text("The secret undershot wheel of the login.")))
	s.apply(river, put("/", "The river", text("Water runs down the river, over an overshot wheel.")))
	return s
}

// connect gives a session of the SDK's client with a server.
func connect(t testing.TB, s *Server, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	here, there := sdk.NewInMemoryTransports()
	server, err := s.sdk.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		_ = server.Wait()
	})
	return client
}

// asked calls a tool that has to answer, and reads its data.
func asked[Out any](t testing.TB, c *sdk.ClientSession, tool string, args map[string]any) (out Out, said string) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	said = saidBy(r)
	if r.IsError {
		t.Fatalf("%s %v: %s", tool, args, said)
	}
	if err := remarshal(r.StructuredContent, &out); err != nil {
		t.Fatal(err)
	}
	return out, said
}

// refused calls a tool that has to refuse, and gives the code of its error, and
// why.
func refused(t testing.TB, c *sdk.ClientSession, tool string, args any) (code, why string) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	code, _ = r.Meta[codeKey].(string)
	if !r.IsError || code == "" {
		t.Fatalf("%s %v is answered: %s", tool, args, saidBy(r))
	}
	return code, saidBy(r)
}

func saidBy(r *sdk.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// broken is a library that fails in one way.
type broken struct{ err error }

func (b broken) Names(context.Context) ([]string, error)         { return []string{mill}, nil }
func (b broken) Site(_ context.Context, _ string) (*Site, error) { return nil, b.err }

var errSecret = errors.New("disk /home/miller/secret.db is on fire")

// slow is a library that takes its time.
type slow struct {
	*shelf
	waits chan struct{}
}

func (s slow) Site(ctx context.Context, name string) (*Site, error) {
	select {
	case <-s.waits:
		return s.shelf.Site(ctx, name)
	case <-ctx.Done():
		return nil, fmt.Errorf("slow: %w", ctx.Err())
	}
}
