package agent_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"net/http"
	"net/http/httptest"
	"testing/fstest"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// mill is a site without a protocol.
var mill = fstest.MapFS{
	"index.html": {Data: []byte(`<title>Mill</title><p>The mill has <a href="wheel.html">a wheel</a>, which turns the stone day and night.</p>`)},
	"wheel.html": {Data: []byte(`<title>Wheel</title><p>The wheel has forty buckets, each of which holds eight liters of water.</p>`)},
}

// text returns the text of all pages of a site.
func text(ctx context.Context, st store.Store, name string) (text string, err error) {
	site, err := st.Site(ctx, name, "")
	if err != nil {
		return "", err
	}
	view, err := site.Head(ctx)
	if err != nil {
		return "", err
	}
	for page, err := range view.Scan(ctx, millrace.Scan{WithBlocks: true}) {
		if err != nil {
			return "", err
		}
		text += page.Title + ": " + page.Text() + "\n"
	}
	return text, nil
}

// start serves mill, and returns an agent for it.
func start() (a *agent.Agent, url string, stop func()) {
	server := httptest.NewServer(http.FileServerFS(mill))
	a, err := agent.New(memory.New(nil), &agent.Options{AllowPrivate: true})
	if err != nil {
		log.Fatal(err)
	}
	return a, server.URL, server.Close
}

// take yields n events.
func take(n int, events iter.Seq2[*agent.Event, error]) iter.Seq2[*agent.Event, error] {
	return func(yield func(*agent.Event, error) bool) {
		for e, err := range events {
			if n--; !yield(e, err) || n == 0 {
				return
			}
		}
	}
}

// Pull reads a site into a store, here one in memory.
func ExampleAgent_Pull() {
	server, st := httptest.NewServer(http.FileServerFS(mill)), memory.New(nil)
	defer server.Close()
	a, _ := agent.New(st, &agent.Options{AllowPrivate: true}) // for a server on this machine
	reports, err := a.Pull(context.Background(), server.URL)
	fmt.Println(reports[0].Via, reports[0].Added, err)
	fmt.Println(text(context.Background(), st, reports[0].Site))
	// Output:
	// crawl 2 <nil>
	// Mill: The mill has a wheel, which turns the stone day and night.
	// Wheel: The wheel has forty buckets, each of which holds eight liters of water.
	//  <nil>
}

// Watch yields the changes of sites. Here every page is new.
func ExampleAgent_Watch() {
	a, url, stop := start()
	defer stop()
	for event, err := range take(2, a.Watch(context.Background(), []string{url}, &agent.WatchOptions{MaxChanges: 1})) {
		changes, _ := event.Changes()
		fmt.Println(changes[0].Change, changes[0].Title, err)
	}
	// Unordered output:
	// added Mill <nil>
	// added Wheel <nil>
}
