package apply

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

type caddy struct{ *Applier }

func (c *caddy) file() string { return c.path("etc/caddy/Caddyfile") }

func (c *caddy) test(ctx context.Context) error {
	return c.run(ctx, "caddy", "validate", "--config", c.file(), "--adapter", "caddyfile")
}

func (c *caddy) reload(ctx context.Context) error {
	return c.run(ctx, "caddy", "reload", "--config", c.file(), "--adapter", "caddyfile")
}

func (c *caddy) stop(context.Context) error { return nil }

func (c *caddy) plan(ctx context.Context) ([]change, error) {
	if err := c.test(ctx); err != nil {
		return nil, broken(err, c.file())
	}
	site, err := url.Parse(c.o.Base)
	if err != nil {
		return nil, err
	}
	snippet := c.path("etc/caddy/millrace.caddy")
	texts, top := map[string][]byte{}, 0
	var blocks []block
	files := []string{c.file()}
	for i := 0; i < len(files); i++ {
		name, err := filepath.EvalSymlinks(files[i])
		if err != nil {
			return nil, err
		}
		if texts[name] != nil {
			continue
		}
		if texts[name], err = os.ReadFile(name); err != nil {
			return nil, err
		}
		f := caddyFile(name, texts[name], site)
		if i == 0 {
			top = f.top
		}
		blocks = append(blocks, f.blocks...)
		for _, pattern := range f.imports {
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(filepath.Dir(name), pattern)
			}
			more, _ := filepath.Glob(pattern) // ignore the error, because Caddy itself tests the pattern
			files = append(files, more...)
		}
	}
	if blocks = best(blocks); len(blocks) == 0 {
		return nil, fmt.Errorf("%w: no block of %s is for %s; write \"import millrace\" into the block of the site, with the output of millrace snippet caddy at the top of the file",
			millrace.ErrNotFound, c.file(), site.Host)
	}
	changes, err := c.insert(snippet, blocks, texts, "\n\timport millrace"+mark)
	if err != nil {
		return nil, err
	}
	// Import the snippet itself before the first block.
	main, err := filepath.EvalSymlinks(c.file())
	if err != nil {
		return nil, err
	}
	line := "import " + snippet + mark + "\n"
	if top > 0 {
		line = "\n" + line
	}
	at := slices.IndexFunc(changes, func(c change) bool { return c.File == main })
	if at < 0 {
		changes = append(changes, change{File: main, data: texts[main]})
		at = len(changes) - 1
	}
	ch := &changes[at]
	ch.Inserted = append(ch.Inserted, line)
	ch.data = slices.Concat(ch.data[:top], []byte(line), ch.data[top:])
	return changes, nil
}

// caddyfile describes one Caddyfile.
type caddyfile struct {
	top     int // offset of the end of the global options
	blocks  []block
	imports []string // patterns of imported files
}

// caddyFile finds the blocks of a Caddyfile that fit the site.
func caddyFile(file string, data []byte, site *url.URL) (f caddyfile) {
	depth := 0
	var head []token
	for i, t := range scan(data, "") {
		switch {
		case t.text == "{" && !t.quoted:
			if depth++; depth > 1 {
				break
			}
			if b := (block{file: file, at: t.end, rank: -1}); len(head) > 0 {
				for _, w := range head {
					for name := range strings.SplitSeq(w.text, ",") {
						if r := addressRank(name, site); r >= 0 && (b.rank < 0 || r < b.rank) {
							b.rank = r
						}
					}
				}
				if b.rank >= 0 {
					f.blocks = append(f.blocks, b)
				}
			}
			if len(head) == 0 && i == 0 {
				f.top = -1 // the end of the options is not found yet
			}
			head = nil
		case t.text == "}" && !t.quoted:
			if depth--; depth == 0 && f.top < 0 {
				f.top = t.end
			}
			head = nil
		case depth == 0:
			if len(head) == 1 && head[0].text == "import" && head[0].line == t.line {
				f.imports = append(f.imports, t.text)
				head = nil
				break
			}
			head = append(head, t)
		}
	}
	f.top = max(f.top, 0)
	return f
}

// addressRank returns how well the address of a block fits a site, like nameRank, or -1 if it does
// not fit. An address with another port fits less well.
func addressRank(address string, site *url.URL) int {
	if address == "" || strings.HasPrefix(address, "(") || strings.HasPrefix(address, "&") {
		return -1
	}
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "", address
	}
	rest, _, _ = strings.Cut(rest, "/")
	host, port, _ := strings.Cut(rest, ":")
	want := site.Port()
	if want == "" {
		want = map[string]string{"https": "443", "http": "80"}[site.Scheme]
	}
	if port == "" {
		port = map[string]string{"http": "80"}[scheme]
	}
	if port == "" {
		port = "443"
	}
	rank := nameRank(host, strings.ToLower(site.Hostname()))
	switch {
	case rank < 0 || port == want:
		return rank
	case rank < 2:
		return rank + 3
	}
	return -1
}
