package static

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// kind is a static host: the files that it reads, and the header fields that it sends.
type kind struct {
	name  string
	title string
	// domains are the domains below which the host serves sites, and marks are files that
	// only its users have in the root of a site.
	domains, marks []string

	rules  int      // maximum number of rules for its fields. If zero, the host has no rules.
	splats bool     // values may use ":splat" for the characters that a "*" matches
	own    []string // files of the site that the build extends
	write  func(*Build) error
	fields func(*Build, *line) []field // the fields that the host sends without rules, or nil
	types  map[string]string           // media types by extension, in addition to those of every host
	dates  bool                        // a 304 of a document has Last-Modified in addition to ETag
	strict bool                        // a 304 requires every condition of the request, as with nginx by default
	aside  bool                        // the host finds documents with a separate name
	silent bool                        // the host sends no Link fields
	upload string                      // instructions for uploading the folder
}

// Names of hosts that other code also uses.
const (
	netlify    = "netlify"
	cloudflare = "cloudflare"
	vercel     = "vercel"
)

// kinds are the known hosts. The last one stands for any other host.
var kinds = []kind{
	{
		name: "github", title: "GitHub Pages", domains: []string{"github.io"}, marks: []string{"CNAME", ".nojekyll"}, silent: true,
		write: (*Build).github, types: mimeDB, upload: "Publish the folder with the action upload-pages-artifact and include-hidden-files, or push it to the branch of the site.",
	},
	{
		name: "gitlab", title: "GitLab Pages", domains: []string{"gitlab.io"}, marks: []string{".gitlab-ci.yml"}, own: []string{redirectsName}, aside: true, silent: true,
		write: (*Build).redirects, types: map[string]string{".md": "text/plain"}, upload: "Publish the folder as the artifact public of the pages job.",
	},
	{
		name: netlify, title: "Netlify", domains: []string{"netlify.app"}, marks: []string{"netlify.toml"}, own: []string{headersName, redirectsName}, aside: true,
		rules: maxRulesNetlify, write: (*Build).headersFiles, upload: "Publish the folder; Netlify reads _headers and _redirects.",
	},
	{
		name: cloudflare, title: "Cloudflare Pages", domains: []string{"pages.dev"}, marks: []string{"wrangler.toml", "wrangler.jsonc"}, own: []string{headersName, redirectsName}, aside: true,
		rules: maxRules, splats: true, write: (*Build).headersFiles, upload: "Publish the folder; Cloudflare reads _headers and _redirects.",
	},
	{
		name: vercel, title: "Vercel", domains: []string{"vercel.app"}, marks: []string{vercelName}, own: []string{vercelName}, aside: true,
		rules: maxRulesVercel, write: (*Build).vercel, types: mimeDB, upload: "Deploy the folder as the root of the project; Vercel reads vercel.json.",
	},
	{
		name: "s3", title: "S3 and CloudFront", domains: []string{"amazonaws.com", "cloudfront.net"}, silent: true,
		write: (*Build).s3, fields: (*Build).s3Fields, upload: "Upload the folder with .millrace/s3.sh BUCKET [DISTRIBUTION]; the file explains the setup of CloudFront.",
	},
	{
		name: "nginx", title: "nginx", fields: (*Build).allFields, aside: true, dates: true,
		write: func(b *Build) error {
			return errors.Join(b.hiddenFile("nginx-http.conf", b.nginxMaps), b.hiddenFile("nginx.conf", b.nginxServer))
		},
		upload: "Include .millrace/nginx-http.conf in http and .millrace/nginx.conf in server, and reload nginx after every build.",
	},
	{
		name: "caddy", title: "Caddy", fields: (*Build).allFields, aside: true, dates: true,
		write:  func(b *Build) error { return b.hiddenFile("Caddyfile", b.caddy) },
		upload: "Import .millrace/Caddyfile in the block of the site, and reload Caddy after every build.",
	},
	{
		name: "plain", title: "a host without configurable header fields", strict: true, silent: true,
		write: func(*Build) error { return nil }, upload: "Use --host to write the files that your host reads.",
	},
}

// mimeDB contains the media types of mime-db, which GitHub Pages and Vercel use.
var mimeDB = map[string]string{
	".atom": "application/atom+xml", ".gz": "application/gzip", ".md": "text/markdown; charset=utf-8", ".xml": "application/xml",
	".html": "text/html; charset=utf-8", ".json": "application/json; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".yaml": "text/yaml",
}

// HostNames returns the names of the hosts for [Options]. The last one, plain, is the default.
func HostNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// GuessHost returns the name of the host that will serve a site: by the domain of its base URL,
// else by a file in its folder that only this host reads. It returns "" if neither identifies the
// host. A nil folder has no files.
func GuessHost(base string, folder fs.FS) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	for _, k := range kinds {
		for _, d := range k.domains {
			if strings.HasSuffix("."+u.Hostname(), "."+d) {
				return k.name
			}
		}
	}
	for _, k := range kinds {
		for _, name := range k.marks {
			if folder == nil {
				break
			}
			if _, err := fs.Stat(folder, name); err == nil {
				return k.name
			}
		}
	}
	return ""
}

// SendsLinks reports whether a host sends the Link fields of pages. On others, clients find
// documents by elements in the head of pages.
func SendsLinks(name string) bool {
	k := kindOf(name)
	return k != nil && !k.silent
}

// kindOf returns a host by its name, and the last kind for "".
func kindOf(name string) *kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == cmp.Or(name, kinds[len(kinds)-1].name) })
	if i < 0 {
		return nil
	}
	return &kinds[i]
}

// typeOf returns the media type that the host uses for a name.
func (k *kind) typeOf(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if t := k.types[ext]; t != "" {
		return t
	}
	switch ext {
	case ".html", ".htm":
		return "text/html"
	case ".json":
		return "application/json"
	case ".xml":
		return "text/xml"
	case ".txt":
		return "text/plain"
	case ".css":
		return "text/css"
	case ".js":
		return "text/javascript"
	}
	return "application/octet-stream"
}

// allFields returns every field of a file.
func (b *Build) allFields(l *line) (out []field) {
	if l.Set > 0 {
		out = slices.Clone(b.lists[l.Set-1])
	}
	if l.Link != "" {
		out = append(out, field{"Link", l.Link})
	}
	if l.Tag != "" {
		out = append(out, field{"Etag", l.Tag})
	}
	return out
}

// github writes the file that keeps GitHub Pages from running Jekyll, which would drop files
// and folders such as .well-known.
func (b *Build) github() error {
	const name = ".nojekyll"
	if _, own := b.names[keyOf(name)]; own {
		return nil
	}
	return b.ownFile(name, []byte("Serve every file of this folder.\n"))
}

// hiddenFile writes a file of the hidden folder.
func (b *Build) hiddenFile(name string, write func(*bufio.Writer) error) error {
	o := &output{build: b, name: hidden + "/" + name}
	text := bufio.NewWriter(o)
	err := write(text)
	if err == nil {
		err = text.Flush()
	}
	changed := false
	if err == nil {
		changed, err = o.complete(time.Time{})
	}
	if changed && err == nil {
		err = o.addToBatch()
	}
	if err != nil {
		_ = o.discard()
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
