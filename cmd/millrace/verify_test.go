package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/dcz"
	"github.com/millrace/millrace/internal/verify"
)

// verified runs verify and returns its report.
func verified(t *testing.T, exit int, args ...string) verify.Report {
	t.Helper()
	code, out, errs := command(t, nil, append([]string{"verify", "--json"}, args...)...)
	var r verify.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exit {
		t.Fatalf("%q: exit %d, want %d; %v: %s%s", args, code, exit, err, out, errs)
	}
	return r
}

// Verify finds damage in a store and its artifacts. Removed data is created again.
func TestVerify(t *testing.T) {
	t.Parallel()
	site, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "s.db")
	folder := filepath.Join(t.TempDir(), "out")
	publish := func() { built(t, site, folder, "https://handbook.example/", "--store", file) }
	publish()
	if code, _, errs := command(t, nil, "search", "--store", file, "water"); code != exitGood {
		t.Fatal(errs)
	}
	index, err := filepath.Glob(filepath.Join(file+".index", "*.db"))
	if err != nil || len(index) != 1 {
		t.Fatalf("%q %v", index, err)
	}
	whole := verified(t, exitGood, file)
	if whole.Pages == 0 || whole.Artifacts == 0 || whole.Indexes != 1 || whole.Damaged != 0 {
		t.Fatalf("%+v", whole)
	}
	contents := func() map[string]string {
		t.Helper()
		_, out, _ := command(t, nil, "export", "--store", file, "--format", "jsonl")
		pages := make(map[string]string)
		for text := range strings.Lines(out) {
			var page struct {
				URL    string
				Blocks json.RawMessage
			}
			if err := json.Unmarshal([]byte(text), &page); err != nil {
				t.Fatal(err)
			}
			pages[page.URL] = string(page.Blocks)
		}
		return pages
	}
	original := contents()
	change := func(statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	damage := func(name string) error {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		data[len(data)/2] ^= 1
		return os.WriteFile(name, data, 0o600)
	}
	artifacts := func(pattern string) []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(file+"-files", pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%q: %v", names, err)
		}
		return names
	}
	for _, c := range []struct {
		name   string
		damage func() error
		kind   string
		min    int
	}{
		{"index", func() error { return os.Truncate(index[0], 10_000) }, "index", 1},
		{"chunk", func() error { return damage(artifacts("*.chunk1")[0]) }, "artifact", 1},
		{"missing", func() error { return os.Remove(artifacts("*.chunk1")[0]) }, "artifact", 1},
		{"all", func() error { return os.RemoveAll(file + "-files") }, "artifact", whole.Artifacts},
		{"body", func() error { change("UPDATE body SET data = substr(data, 1, 20) WHERE id = 3"); return nil }, "page", 1},
		{"no body", func() error { change("DELETE FROM body WHERE id = 4"); return nil }, "page", 1},
	} {
		before := verified(t, exitGood, file)
		if err := c.damage(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first run changes nothing
			r := verified(t, exitFailure, file)
			if r.Damaged < c.min || r.Removed != 0 || slices.ContainsFunc(r.Damage, func(d verify.Damage) bool { return d.Kind != c.kind || d.Name == "" }) {
				t.Errorf("%s: %+v", c.name, r)
			}
		}
		if r := verified(t, exitGood, "--repair", file); r.Damaged < c.min || r.Removed != r.Damaged {
			t.Errorf("%s: %+v", c.name, r)
		}
		publish()
		if r := verified(t, exitGood, file); r.Damaged > 0 || r.Artifacts < before.Artifacts {
			t.Errorf("%s: published again: %+v, before %+v", c.name, r, before)
		}
		if after := contents(); !maps.Equal(after, original) {
			t.Errorf("%s: the contents of %d pages differ", c.name, len(after))
		}
	}
	// Artifacts that no edition contains: a version that a client has, a document coded against
	// it, and a chunk.
	held := []byte(strings.Repeat("held by a client", 99))
	id := dcz.Sum(held)
	coded, err := new(dcz.Encoder).Encode(held, id, slices.Concat(held, []byte("and what is new")))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []struct{ name, content string }{
		{fmt.Sprintf("dcz_/bytes-%x", id), string(held)},
		{fmt.Sprintf("dcz_/pair-%x-00", id), string(coded)},
		{fmt.Sprintf("%x.chunk1", sha256.Sum256([]byte("x"))), "\x00\x01\x00\xfe\xffx"},
	} {
		name, content := filepath.Join(file+"-files", a.name), a.content
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, name, content)
		verified(t, exitGood, file)
		if err := damage(name); err != nil {
			t.Fatal(err)
		}
		verified(t, exitFailure, file)
		if r := verified(t, exitGood, "--repair", file); r.Damaged != 1 || r.Removed != 1 {
			t.Errorf("%s: %+v", name, r)
		}
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s still exists", name)
		}
		write(t, name, content)
	}
	if exit, code, out := failure(t, nil, "verify", t.TempDir()); exit != exitFailure || code != "foreign-folder" {
		t.Errorf("a folder that no build wrote: exit %d, code %s: %s", exit, code, out)
	}
	if r := verified(t, exitGood, folder); r.Files == 0 {
		t.Errorf("%+v", r)
	}
	write(t, filepath.Join(folder, "index.html"), strings.Repeat("x", 100))
	if r := verified(t, exitFailure, "--repair", folder); r.Damaged != 1 || r.Damage[0].Name != "index.html" {
		t.Errorf("%+v", r)
	}
	publish()
	verified(t, exitGood, folder)
}
