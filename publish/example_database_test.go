package publish_test

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"net/http"

	"github.com/go-chi/chi/v5"
	_ "modernc.org/sqlite"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/publish"
)

// parts opens a database with a row for each page, and a router that serves HTML.
func parts() (*sql.DB, http.Handler, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err == nil {
		db.SetMaxOpenConns(1) // each connection would open its own database
		_, err = db.Exec(`CREATE TABLE parts (slug TEXT, name TEXT, text TEXT);
			INSERT INTO parts VALUES ('damsel', 'The damsel', 'It shakes the shoe.'), ('shoe', 'The shoe', 'It feeds the stones.')`)
	}
	router := chi.NewRouter()
	router.Get("/parts/{slug}", func(w http.ResponseWriter, r *http.Request) {
		var name string
		if err := db.QueryRowContext(r.Context(), `SELECT name FROM parts WHERE slug = ?`, chi.URLParam(r, "slug")).Scan(&name); err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!DOCTYPE html><title>%s</title>", name)
	})
	return db, router, err
}

// rows yields the page of each row.
func rows(db *sql.DB) func(ctx context.Context) iter.Seq2[*millrace.Page, error] {
	return func(ctx context.Context) iter.Seq2[*millrace.Page, error] {
		return func(yield func(*millrace.Page, error) bool) {
			found, err := db.QueryContext(ctx, `SELECT slug, name, text FROM parts`)
			if err != nil {
				yield(nil, err)
				return
			}
			defer found.Close()
			for found.Next() {
				var slug, name, text string
				err := found.Scan(&slug, &name, &text)
				p := &millrace.Page{URL: "https://mill.example/parts/" + slug, Title: name, Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: text}}}
				if !yield(p, err) || err != nil {
					return
				}
			}
			if err := found.Err(); err != nil {
				yield(nil, err)
			}
		}
	}
}

const mill = "https://mill.example/"

// publishParts publishes the rows of a database. A chi router serves their HTML, and the server
// adds the links for machines to it.
func publishParts(ctx context.Context, o publish.Options) (*publish.Server, error) {
	db, router, err := parts()
	if err != nil {
		return nil, err
	}
	o.BaseURL, o.Next = mill, router
	site, err := publish.New(ctx, publish.Pages(rows(db)), &o)
	if err != nil {
		return nil, err
	}
	return site, site.Ready(ctx)
}

// The pages are rows of a database, behind a chi router.
func Example_database() {
	site, err := publishParts(context.Background(), publish.Options{})
	fmt.Print(markdown(site, mill+"parts/shoe"))
	fmt.Println(err, site.Close())
	// Output:
	// # The shoe
	//
	// It feeds the stones.
	// <nil> <nil>
}

// Reload applies other options without a restart.
func ExampleServer_Reload() {
	site, err := publishParts(context.Background(), publish.Options{})
	hidden := millrace.Visibility{Exclude: []string{"/parts/shoe"}}
	fmt.Println(err, site.Reload(context.Background(), &publish.Options{BaseURL: mill, Visibility: hidden}))
	fmt.Printf("%q\n", markdown(site, mill+"parts/shoe"))
	fmt.Println(site.Close())
	// Output:
	// <nil> <nil>
	// ""
	// <nil>
}
