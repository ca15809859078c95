package apply

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/setup"
)

type nginx struct{ *Applier }

func (n *nginx) file() string { return n.path("etc/nginx/nginx.conf") }

// command returns the arguments of nginx for the configuration below the root.
func (n *nginx) command(args ...string) []string {
	if n.o.Root != "/" {
		args = append(args, "-c", n.file())
	}
	return args
}

func (n *nginx) test(ctx context.Context) error {
	return n.run(ctx, "nginx", n.command("-t", "-q")...)
}

func (n *nginx) reload(ctx context.Context) error {
	return n.run(ctx, "nginx", n.command("-s", "reload")...)
}

func (n *nginx) stop(context.Context) error { return nil }

// files makes nginx test the configuration, and returns its files.
func (n *nginx) files(ctx context.Context) ([]string, error) {
	out, err := n.output(ctx, "nginx", n.command("-T")...)
	if err != nil {
		return nil, broken(err, n.file())
	}
	var files []string
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, "# configuration file "); ok {
			if name = strings.TrimSuffix(strings.TrimSpace(name), ":"); filepath.IsAbs(name) && !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	return files, nil
}

func (n *nginx) plan(ctx context.Context) ([]change, error) {
	files, err := n.files(ctx)
	if err != nil {
		return nil, err
	}
	site, err := url.Parse(n.o.Base)
	if err != nil {
		return nil, err
	}
	snippet := n.path("etc/nginx/snippets/millrace.conf")
	var blocks []block
	texts := map[string][]byte{}
	for _, name := range files {
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return nil, err
		}
		if texts[name] != nil {
			continue
		}
		if texts[name], err = os.ReadFile(name); err != nil {
			return nil, err
		}
		blocks = append(blocks, servers(name, texts[name], snippet, site)...)
	}
	blocks = best(blocks)
	if len(blocks) == 0 {
		return nil, fmt.Errorf("%w: no server block has server_name %s; add \"include %s;\" to the server block of the site, and write the output of \"millrace snippet nginx\" to that file",
			millrace.ErrNotFound, site.Hostname(), snippet)
	}
	return n.insert(snippet, blocks, texts, "\n\tinclude "+snippet+";"+mark)
}

// insert returns the changes that write the snippet and insert a line into blocks.
func (a *Applier) insert(snippet string, blocks []block, texts map[string][]byte, line string) ([]change, error) {
	text, err := setup.Snippet(a.program, &setup.SnippetOptions{Listen: a.o.Listen, Base: a.o.Base, Exec: a.o.Exec})
	if err != nil {
		return nil, err
	}
	out := []change{{File: snippet, data: []byte(text), mode: 0o644}}
	for _, b := range slices.Backward(blocks) { // backward, so that offsets remain valid
		if b.taken {
			continue
		}
		i := slices.IndexFunc(out, func(c change) bool { return c.File == b.file })
		if i < 0 {
			out = append(out, change{File: b.file, Inserted: []string{line}, data: texts[b.file]})
			i = len(out) - 1
		}
		out[i].data = slices.Concat(out[i].data[:b.at], []byte(line), out[i].data[b.at:])
	}
	return out, nil
}

// servers returns the server blocks of a file that fit the site.
func servers(file string, data []byte, snippet string, site *url.URL) []block {
	type server struct {
		block
		depth         int
		names, listen []string
	}
	var (
		out   []block
		words []token
		open  []string // names of the open blocks
		now   *server
	)
	for _, t := range scan(data, ";{}") {
		if t.quoted || !strings.ContainsAny(t.text, ";{}") {
			words = append(words, t)
			continue
		}
		first := ""
		if len(words) > 0 {
			first = words[0].text
		}
		switch t.text {
		case "{":
			if open = append(open, first); first == "server" && !slices.Contains(open, "stream") && !slices.Contains(open, "mail") {
				now = &server{block: block{file: file, at: t.end}, depth: len(open)}
			}
		case "}":
			if now != nil && now.depth == len(open) {
				if now.rank = serverRank(now.names, now.listen, site); now.rank >= 0 {
					out = append(out, now.block)
				}
				now = nil
			}
			open = open[:max(0, len(open)-1)]
		case ";":
			if now == nil || now.depth != len(open) {
				break
			}
			for i, w := range words[min(1, len(words)):] {
				switch {
				case first == "server_name":
					now.names = append(now.names, w.text)
				case first == "listen" && i == 0:
					now.listen = append(now.listen, w.text)
				case first == "include" && w.text == snippet:
					now.taken = true
				}
			}
		}
		words = words[:0]
	}
	return out
}

// serverRank returns how well a server fits a site; -1 = not at all. Servers on the site's port
// fit best. Servers on other ports also fit, because a proxy may be in front of them.
func serverRank(names, listen []string, site *url.URL) int {
	rank := -1
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		if r := nameRank(name, strings.ToLower(site.Hostname())); r >= 0 && (rank < 0 || r < rank) {
			rank = r
		}
	}
	if rank < 0 {
		return -1
	}
	want := site.Port()
	if want == "" {
		want = map[string]string{"https": "443"}[site.Scheme]
	}
	if want == "" {
		want = "80"
	}
	if len(listen) == 0 {
		listen = []string{"80"}
	}
	for _, at := range listen {
		_, port, err := net.SplitHostPort(at)
		if err != nil {
			if port = at; bytes.ContainsAny([]byte(at), ".:[") {
				port = "80" // an address
			}
		}
		if port == want {
			return rank
		}
	}
	if rank < 2 {
		return rank + 3
	}
	return -1
}
