package markdown

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tree"
)

// configs contains the configuration files that identify a generator. They are tried in this order.
var configs = []struct {
	kind  Kind
	names []string
	load  func(p *project) (*site, error)
}{
	{Hugo, []string{
		"hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json", "config/_default/hugo.toml", "config/_default/hugo.yaml",
		"config/_default/config.toml", "config/_default/config.yaml", "config/_default/config.yml", "config/_default/config.json",
		"config.toml", "config.yaml", "config.yml", "config.json",
	}, loadHugo},
	{Jekyll, []string{"_config.yml", "_config.yaml", "_config.toml"}, loadJekyll},
	{MkDocs, []string{"mkdocs.yml", "mkdocs.yaml"}, loadMkDocs},
	{Docusaurus, []string{"docusaurus.config.js", "docusaurus.config.ts", "docusaurus.config.mjs", "docusaurus.config.cjs"}, loadDocusaurus},
	{Plain, nil, loadPlain},
}

// project is a folder whose configuration is being read.
type project struct {
	root *os.Root
	file string // configuration file, or ""
	conf matter // content of a YAML, TOML or JSON file
	text string // content of a file in another format
}

// isFolder reports whether a folder of the project exists.
func (p *project) isFolder(name string) bool {
	info, err := p.root.Stat(name)
	return err == nil && info.IsDir()
}

// read reads a configuration file. It returns nil if the file does not exist.
func (p *project) read(name string) (matter, error) {
	data, _, _, err := tree.Read(p.root, name, maxConfig)
	if errors.Is(err, millrace.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var m matter
	switch path.Ext(name) {
	case ".toml":
		m, err = decodeTOML(data)
	case ".json":
		m, err = decodeJSON(data)
	case ".yaml", ".yml":
		m, err = decodeYAML(data)
	default:
		p.text = string(data)
		return matter{}, nil
	}
	var fe *millrace.FormatError
	if errors.As(err, &fe) {
		fe.URL = name
		var line, column int
		if n, _ := fmt.Sscanf(fe.Position, "%d:%d", &line, &column); n == 2 {
			fe.Position = fmt.Sprintf("%d:%d", line-1, column) // unlike front matter, a configuration file has no line before it
		}
	}
	if m == nil && err == nil {
		m = matter{}
	}
	return m, err
}

// detect returns the project whose folder is dir or contains dir, and the name of dir in the
// project. If no project is found, it returns dir as a project of the kind Plain.
func detect(dir string, kind Kind) (top, sub string, s *site, config string, err error) {
	for _, top := range []string{dir, filepath.Dir(dir)} {
		sub, err := filepath.Rel(top, dir)
		if err != nil {
			continue
		}
		s, config, err := load(top, kind, top == dir && kind != "")
		switch {
		case err != nil && top == dir:
			return "", "", nil, "", err
		case err != nil || s == nil:
			continue // the caller did not name the parent
		}
		sub = filepath.ToSlash(sub)
		if sub != "." && !slices.ContainsFunc(s.roots(), func(r string) bool { return within(r, sub) || r != "." && within(sub, r) }) {
			continue
		}
		if sub != "." && s.kind != Docusaurus && slices.Contains(s.roots(), ".") {
			continue // this kind of project would contain all folders under its root
		}
		return top, sub, s, config, nil
	}
	s, _, err = load(dir, Plain, true)
	return dir, ".", s, "", err
}

// load reads the configuration in a folder. If the configuration is absent, the returned site is
// nil, unless force is set.
func load(dir string, kind Kind, force bool) (*site, string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", tree.PathError(err)
	}
	defer root.Close()
	for _, c := range configs {
		if kind != "" && c.kind != kind {
			continue
		}
		p := &project{root: root}
		for _, name := range c.names {
			m, err := p.read(name)
			if err != nil {
				return nil, "", err
			}
			if m != nil && (c.kind != Hugo || strings.Contains(name, "hugo.") || isHugo(p, m)) {
				p.file, p.conf = name, m
				break
			}
		}
		if p.file == "" && !force {
			continue
		}
		if s := other(root, p.conf); s != nil && kind == "" && (s.name == "Zola" || s.name == "Hexo") { // these generators use file names of others
			return s, "", nil
		}
		s, err := c.load(p)
		if err != nil {
			return nil, "", err
		}
		s.kind = c.kind
		if s.name == "" {
			s.generator = generators[s.kind]
		}
		return s, p.file, nil
	}
	if kind == "" {
		return other(root, nil), "", nil
	}
	if force {
		return nil, "", millrace.Coded("bad-kind", fmt.Errorf("%w: unknown kind %q", millrace.ErrInvalid, kind))
	}
	return nil, "", nil
}

// isHugo reports whether a configuration file whose name is not specific to Hugo belongs to Hugo.
func isHugo(p *project, m matter) bool {
	for _, name := range []string{"baseurl", "theme", "languagecode", "defaultcontentlanguage", "contentdir", "permalinks", "taxonomies", "markup"} {
		if _, ok := m[name]; ok {
			return true
		}
	}
	return p.isFolder("content") && (p.isFolder("themes") || p.isFolder("layouts") || p.isFolder("archetypes"))
}
