package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// testLibrary is a library backed by a store.
type testLibrary struct {
	t       testing.TB
	store   *memory.Store
	names   []string
	sites   map[string]store.Site
	pubs    map[string]store.Publication // published sites by name
	terms   map[string][]protocol.Terms
	indexed atomic.Int64
	mu      sync.Mutex
	index   map[string]uint64 // indexed sequence number of each site
	clock   time.Time
}

func newTestLibrary(t testing.TB) *testLibrary {
	t.Helper()
	s := &testLibrary{
		t: t, sites: make(map[string]store.Site), pubs: make(map[string]store.Publication), index: make(map[string]uint64), terms: make(map[string][]protocol.Terms),
		clock: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	s.store = memory.New(&store.Options{Now: func() time.Time {
		s.clock = s.clock.Add(time.Second)
		return s.clock
	}})
	return s
}

func (s *testLibrary) add(name string) {
	s.t.Helper()
	site, err := s.store.Site(s.t.Context(), name, name)
	if err != nil {
		s.t.Fatal(err)
	}
	pub, err := site.Publication(s.t.Context(), store.Config{Base: name})
	if err != nil {
		s.t.Fatal(err)
	}
	s.names, s.sites[name], s.pubs[name] = append(s.names, name), site, pub
	s.apply(name)
}

// apply applies changes in one transaction.
func (s *testLibrary) apply(name string, changes ...millrace.Change) {
	s.t.Helper()
	if _, err := s.sites[name].Apply(s.t.Context(), "a test", changes); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.pubs[name].Refresh(s.t.Context(), store.Lease{}, 0, nil); err != nil {
		s.t.Fatal(err)
	}
}

// put returns the change that adds a page.
func put(url, title string, blocks ...millrace.Block) millrace.Change {
	p := &millrace.Page{URL: url, Title: title, Blocks: blocks, Detail: millrace.DetailBlocks, Known: millrace.AllFields}
	return millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: url, Version: p.Revision()}, Page: p}
}

func gone(url string) millrace.Change {
	return millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: url}}
}

func text(s string) millrace.Block { return millrace.Block{Type: millrace.TextBlock, Text: s} }

// Names implements [Library].
func (s *testLibrary) Names(context.Context) ([]string, error) { return s.names, nil }

// Site implements [Library].
func (s *testLibrary) Site(ctx context.Context, name string) (*Site, error) {
	pub := s.pubs[name]
	if pub == nil {
		return nil, millrace.ErrNotFound
	}
	v, err := pub.Head(ctx)
	if err != nil {
		return nil, err
	}
	return &Site{Name: name, View: searched{v, s, name}, Terms: s.terms[name]}, nil
}

// Index implements [Indexer].
func (s *testLibrary) Index(ctx context.Context, name string, progress func(done, total int)) error {
	s.indexed.Add(1)
	v, err := s.pubs[name].Head(ctx)
	if err != nil {
		return err
	}
	if n := v.Site().Pages; progress != nil {
		progress(n, n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index[name] = v.Site().Seq
	return nil
}

// searched is a view that is searchable once its site is indexed.
type searched struct {
	millrace.View
	of   *testLibrary
	name string
}

// Search implements [millrace.Searcher].
func (v searched) Search(ctx context.Context, q millrace.Query) (*millrace.Found, error) {
	v.of.mu.Lock()
	indexed := v.of.index[v.name] >= v.Site().Seq
	v.of.mu.Unlock()
	if !indexed {
		return nil, fmt.Errorf("search: %w: not indexed", millrace.ErrUnavailable)
	}
	var pages []*millrace.Page
	for p, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return protocoltest.NewView(v.Site(), pages).Search(ctx, q)
}

const (
	mill  = "https://mill.example/"
	river = "https://river.example/"
)

// mills returns a library of two sites.
func mills(t testing.TB) *testLibrary {
	t.Helper()
	s := newTestLibrary(t)
	s.add(mill)
	s.add(river)
	yes, no := true, false
	s.terms[mill] = []protocol.Terms{{URL: mill + "policy.json", Policy: &millrace.Policy{
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

// connect returns a session of the SDK's client with a server.
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

// asked calls a tool, which must succeed, and decodes its result.
func asked[Out any](t testing.TB, c *sdk.ClientSession, tool string, args map[string]any) (out Out, text string) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	text = resultText(r)
	if r.IsError {
		t.Fatalf("%s %v: %s", tool, args, text)
	}
	if err := remarshal(r.StructuredContent, &out); err != nil {
		t.Fatal(err)
	}
	return out, text
}

// refused calls a tool, which must fail. It returns the code and the text of the error.
func refused(t testing.TB, c *sdk.ClientSession, tool string, args any) (code, why string) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	code, _ = r.Meta[codeKey].(string)
	if !r.IsError || code == "" {
		t.Fatalf("%s %v returned a result: %s", tool, args, resultText(r))
	}
	return code, resultText(r)
}

func resultText(r *sdk.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// broken is a library whose methods return err.
type broken struct{ err error }

func (b broken) Names(context.Context) ([]string, error)         { return []string{mill}, nil }
func (b broken) Site(_ context.Context, _ string) (*Site, error) { return nil, b.err }

var errSecret = errors.New("disk error in /home/miller/secret.db")

// slow is a library whose methods take time.
type slow struct {
	*testLibrary
	waits chan struct{}
}

func (s slow) Site(ctx context.Context, name string) (*Site, error) {
	select {
	case <-s.waits:
		return s.testLibrary.Site(ctx, name)
	case <-ctx.Done():
		return nil, fmt.Errorf("slow: %w", ctx.Err())
	}
}
