package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/commonmark"
)

// releases are versions of the package npm, which contains its documentation in Markdown. They are
// in order of publication, without later releases of older major versions.
var releases = strings.Fields(`
	8.5.1 8.5.2 8.5.3 8.5.4 8.5.5 8.6.0 8.7.0 8.8.0 8.9.0 8.10.0 8.11.0 8.12.0 8.12.1 8.12.2 8.13.0 8.13.1
	8.13.2 8.14.0 8.15.0 8.15.1 8.16.0 8.17.0 8.18.0 8.19.0 8.19.1 8.19.2 9.0.0 9.0.1 9.1.0 9.1.1 9.1.2`)

// history measures mirrors of npm's documentation if a new release is published each day.
func (b *bench) history(ctx context.Context, short bool) error {
	if _, err := exec.LookPath("npm"); errors.Is(err, exec.ErrNotFound) {
		fmt.Fprintln(os.Stderr, "history: skipped: npm, which downloads the releases, is not installed")
		return nil
	} else if err != nil {
		return err
	}
	m := &month{bench: b, name: "npm's documentation", as: "markdown", days: monthDays}
	if short {
		m.days = 4
	}
	site, err := newReleaseSite(ctx, filepath.Join(b.dir, "npm"), releases[:m.days+1])
	if err != nil {
		return err
	}
	m.site = site
	return m.run(ctx)
}

// releaseSite is npm's documentation as a changing site, with one release a day.
type releaseSite struct {
	releases []map[string]string // Markdown by file name
	day      int
}

// newReleaseSite downloads releases into a folder, and reads their documentation.
func newReleaseSite(ctx context.Context, folder string, versions []string) (*releaseSite, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	args := []string{"pack", "--silent", "--prefer-offline"}
	for _, v := range versions {
		args = append(args, "npm@"+v)
	}
	c := exec.CommandContext(ctx, "npm", args...)
	c.Dir, c.Stderr = folder, os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("npm pack: %w", err)
	}
	archives := strings.Fields(string(out))
	if len(archives) != len(versions) {
		return nil, fmt.Errorf("npm pack wrote %q, want %d archives", archives, len(versions))
	}
	s := &releaseSite{}
	for _, name := range archives {
		files, err := documentation(filepath.Join(folder, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files["index.md"] = contents(files)
		s.releases = append(s.releases, files)
	}
	return s, nil
}

// documentation reads the Markdown files of an archive of the package.
func documentation(archive string) (map[string]string, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	plain, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for entries := tar.NewReader(plain); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		name, ok := strings.CutPrefix(h.Name, "package/docs/content/")
		if !ok || path.Ext(name) != ".md" {
			continue
		}
		text, err := io.ReadAll(entries)
		if err != nil {
			return nil, err
		}
		files[name] = string(text)
	}
	if len(files) == 0 {
		return nil, errors.New("no documentation")
	}
	return files, nil
}

// contents returns the home page, which the package does not contain: a list of all pages.
func contents(files map[string]string) string {
	var text strings.Builder
	text.WriteString("---\ntitle: npm CLI\ndescription: The commands, configuration and concepts of npm\n---\n")
	section := ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if dir := path.Dir(name); dir != section {
			section = dir
			fmt.Fprintf(&text, "\n## %s\n\n", section)
		}
		title, description, _ := frontMatter(files[name])
		fmt.Fprintf(&text, "- [%s](%s): %s\n", title, pathOf(pageName(name)), description)
	}
	return text.String()
}

// pageName returns the name of a file's page.
func pageName(file string) string {
	stem := strings.TrimSuffix(file, ".md")
	if stem == "index" {
		return "index.html"
	}
	return stem + "/index.html"
}

var frontMatterPattern = regexp.MustCompile(`(?s)\A---\n(.*?\n)---\n`)

// frontMatter returns the fields of the front matter, and the text after it.
func frontMatter(file string) (title, description, text string) {
	m := frontMatterPattern.FindStringSubmatch(file)
	if m == nil {
		return "", "", file
	}
	for line := range strings.Lines(m[1]) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "title":
			title = value
		case "description":
			description = value
		}
	}
	return title, description, file[len(m[0]):]
}

// next publishes the next release.
func (s *releaseSite) next(day int) (d monthDay, err error) {
	was, now := s.releases[day-1], s.releases[day]
	s.day = day
	for _, file := range slices.Sorted(maps.Keys(now)) {
		old, there := was[file]
		switch {
		case !there:
			d.added = append(d.added, pageName(file))
		case old != now[file]:
			d.edited = append(d.edited, pageName(file))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(was)) {
		if _, there := now[file]; !there {
			d.removed = append(d.removed, pageName(file))
		}
	}
	return d, nil
}

// pageTemplate is a simple template for documentation, in which every page lists all pages.
var pageTemplate = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<meta name="description" content="{{.Description}}">
<link rel="stylesheet" href="/docs.css">
</head>
<body>
<header><a class="logo" href="/">npm CLI</a></header>
<nav aria-label="Documentation">
<ul>
{{- range .Pages}}
<li><a href="{{.Path}}">{{.Title}}</a></li>
{{- end}}
</ul>
</nav>
<main>
<article>
<h1>{{.Title}}</h1>
{{.Text}}</article>
</main>
<footer><p>The documentation of npm. <a href="https://github.com/npm/cli">Source code</a></p></footer>
</body>
</html>
`))

// toPage matches links to pages without a trailing slash.
var toPage = regexp.MustCompile(`href="(/[^"#.]*[^"#./])(["#])`)

func (s *releaseSite) state() (siteState, error) {
	type link struct{ Path, Title string }
	site := siteState{files: s.releases[s.day], html: map[string]string{}, words: map[string]string{}}
	names := slices.Sorted(maps.Keys(site.files))
	var pages []link
	for _, name := range names {
		title, _, _ := frontMatter(site.files[name])
		pages = append(pages, link{pathOf(pageName(name)), title})
	}
	for _, name := range names {
		title, description, text := frontMatter(site.files[name])
		body, err := commonmark.HTML([]byte(text))
		if err != nil {
			return site, fmt.Errorf("%s: %w", name, err)
		}
		var html strings.Builder
		err = pageTemplate.Execute(&html, map[string]any{
			"Title": title, "Description": description, "Pages": pages,
			"Text": template.HTML(toPage.ReplaceAllString(string(body), `href="$1/$2`)), // #nosec G203 -- commonmark leaves out raw HTML
		})
		if err != nil {
			return site, err
		}
		site.html[pageName(name)], site.words[pageName(name)] = html.String(), site.files[name]
	}
	return site, nil
}
