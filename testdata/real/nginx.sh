#!/usr/bin/env bash
# A real nginx over a folder of HTML, on loopback, with ETag and gzip:
#
#   nginx.sh [--html HTML|--site URL] [--build|--plain] [--snippet FILE] [--port PORT] FOLDER   sets it up in FOLDER, and prints the URL of its home
#   nginx.sh stop FOLDER                                                                        ends what it has started
#
# With --build, HTML is a folder that millrace build has made, whose snippets are a part of the configuration.
# With --plain, nginx is as it comes: neither gzip nor a character set.
# With --snippet, the server includes FILE. With --site, what it serves is another server's, to which it passes everything on.
# FOLDER is a new or empty one, for its configuration, logs and ids. PORT is a free one if it is 0 or left out. HTML is the
# folder to serve: PostgreSQL's manual if it is left out. It needs Debian's nginx-light; the manual is postgresql-doc-15.
set -euo pipefail
# shellcheck source=testdata/real/common.bash
. "$(dirname "${BASH_SOURCE[0]}")/common.bash"

html=/usr/share/doc/postgresql-doc-15/html
build="" wanted=0 snippet="" site=""
while [ $# -gt 1 ]; do
	case $1 in
	--html) html=${2:?a folder} && shift 2 ;;
	--port) wanted=${2:?a port} && shift 2 ;;
	--build) build=yes && shift ;;
	--snippet) snippet=${2:?a file} && shift 2 ;;
	--site) site=${2:?a URL} && shift 2 ;;
	--plain) more="" && shift ;;
	*) break ;;
	esac
done
[ $# != 1 ] || set -- "$1" "$wanted"
begin "$@"
need nginx nginx-light
[ -f "$html/index.html" ] || absent "$html/index.html" postgresql-doc-15

if [ -n "$build" ]; then
	in_http="include $html/.millrace/nginx-http.conf;"
	in_server="include $html/.millrace/nginx.conf;"
fi
[ -z "$snippet" ] || in_server="${in_server-} include $snippet;"
if [ -n "$site" ]; then
	in_server="${in_server-} location / { proxy_pass ${site%/}; proxy_set_header Host \$http_host; proxy_set_header Accept-Encoding \"\"; }"
fi
serve_nginx "$(cd "$html" && pwd)"
ready
