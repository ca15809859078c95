#!/usr/bin/env bash
# Serves a site that Hugo has built, with nginx on loopback: 65 pages in sections, with tags, paged lists, feeds, a sitemap,
# aliases, drafts and a page with a future date.
#
#   hugo.sh FOLDER [PORT]   starts it in FOLDER, and prints the URL of the home page
#   hugo.sh build FOLDER    builds the site again from FOLDER/source, whose content may have been edited
#   hugo.sh stop FOLDER     stops it
#
# FOLDER is a new or empty folder. The Markdown is in FOLDER/source/content, the site in FOLDER/site. If PORT is 0 or
# omitted, it is a free port. The script needs Debian's hugo and nginx-light.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=testdata/real/common.bash
. "$here/common.bash"
# shellcheck source=testdata/real/words.bash
. "$here/words.bash"

build() {
	hugo --quiet --cleanDestinationDir --cacheDir "$folder/cache" --source "$folder/source" --destination "$folder/site" >>"$folder/hugo.log" 2>&1
}

if [ "${1-}" = build ]; then
	folder=$(cd "${2:?a folder}" && pwd)
	build || { cat "$folder/hugo.log" >&2; exit 1; }
	exit
fi
begin "$@"
need hugo hugo
need nginx nginx-light

content=$folder/source/content
mkdir -p "$content" "$folder/source/layouts/_default" "$folder/site"
cat >"$folder/source/config.toml" <<TOML
baseURL = "$home"
languageCode = "en-gb"
title = "The Mill Book"
paginate = 10
enableRobotsTXT = true
[params]
description = "How a water mill works, and how it is kept working."
[taxonomies]
tag = "tags"
TOML

layout() { cat >"$folder/source/layouts/$1"; }
layout _default/baseof.html <<'HTML'
<!DOCTYPE html>
<html lang="{{ .Site.LanguageCode }}">
<head>
<meta charset="utf-8">
<title>{{ if .IsHome }}{{ .Site.Title }}{{ else }}{{ .Title }} | {{ .Site.Title }}{{ end }}</title>
{{ with .Description }}<meta name="description" content="{{ . }}">{{ end }}
<link rel="canonical" href="{{ .Permalink }}">
{{ range .AlternativeOutputFormats }}<link rel="{{ .Rel }}" type="{{ .MediaType.Type }}" href="{{ .Permalink }}">
{{ end }}</head>
<body>
<header><a href="{{ "/" | relURL }}">{{ .Site.Title }}</a>
<nav><ul>{{ range .Site.Sections }}<li><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>{{ end }}<li><a href="/tags/">Tags</a></li></ul></nav></header>
<main>{{ block "main" . }}{{ end }}</main>
<footer><p>Written by those who keep the mill.</p></footer>
</body>
</html>
HTML
layout _default/single.html <<'HTML'
{{ define "main" }}<article>
<h1>{{ .Title }}</h1>
{{ if not .Date.IsZero }}<p class="meta">By {{ .Params.author }} on <time datetime="{{ .Date.Format "2006-01-02" }}">{{ .Date.Format "2 January 2006" }}</time></p>{{ end }}
{{ .Content }}
{{ with .Params.tags }}<p class="tags">{{ range . }}<a href="/tags/{{ . | urlize }}/">{{ . }}</a> {{ end }}</p>{{ end }}
</article>{{ end }}
HTML
layout _default/list.html <<'HTML'
{{ define "main" }}<h1>{{ .Title }}</h1>
{{ .Content }}
<ul>{{ range (.Paginate .Pages).Pages }}<li><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>{{ end }}</ul>
{{ template "_internal/pagination.html" . }}{{ end }}
HTML
layout 404.html <<'HTML'
{{ define "main" }}<h1>There is no such page</h1><p>It may have been washed away.</p>{{ end }}
HTML

# page PATH writes a file of content.
page() {
	mkdir -p "$(dirname "$content/$1")"
	cat >"$content/$1"
}

slug() { tr 'A-Z ' 'a-z-' <<<"$1"; }

subject() {
	page "$2/$(slug "$1").md" <<-MD
		---
		title: "$1"
		description: "$3"
		date: 2026-01-$(printf %02d "$4")T08:00:00Z
		author: "A. Miller"
		tags: ["$2", "of the mill"]
		aliases: ["/old/$4.html"]
		---

		$3 The *miller* looks at it every morning, before the [sluice](/water/sluice/) is opened, and writes into the book
		what has changed since the day before.

		## How it works

		1. It is wetted.
		2. It is looked at by \`lantern\`, from below.
		3. It is left alone for $(($4 + 1)) hours.

		> What runs well is not to be mended.

		## Measures

		| Part   | Size         |
		|--------|--------------|
		| Width  | $(($4 * 3 + 40)) cm |
		| Weight | $(($4 * 17 + 90)) kg |
	MD
	each_aspect aspect "$1" "$4"
}

aspect() {
	page "${3,,}/$(slug "$1").md" <<-MD
		+++
		title = "$1: ${3,,}"
		date = 2026-02-$(printf %02d "$2")T09:30:00Z
		author = "B. Fuller"
		tags = ["${3,,}"]
		+++

		This is the ${3,,} of the [${1,,}](/). $4

		## Sources

		The words are those of the mill book, volume $2.
	MD
}

each subject
for of in wheels water stones work history repair figures; do
	page "$of/_index.md" <<<"---
title: ${of^}
---

All that the mill book says of $of."
done
page _index.md <<<'---
title: The Mill Book
---

The mill book tells how a water mill works, and how it is kept working. It was begun in the year of the great flood.'
page about.md <<<'{
  "title": "About the book",
  "author": "A. Miller",
  "date": "2026-03-01"
}

The book is kept by those who keep the mill. Whoever finds a mistake may tell them at the door.'
page wheels/draft.md <<<'---
title: A draft
draft: true
---

Nobody is to read this secret yet.'
page wheels/tomorrow.md <<<'---
title: A page of tomorrow
date: 2199-01-01T00:00:00Z
---

Nobody is to read this secret before its day.'

build
serve_nginx "$folder/site"
ready
