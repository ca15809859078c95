#!/usr/bin/env bash
# Runs a real nginx on loopback, which serves a folder of HTML with ETag and gzip:
#
#   nginx.sh [--html HTML|--site URL] [--build|--plain] [--snippet FILE] [--port PORT] FOLDER   starts it in FOLDER, and prints the URL of the home page
#   nginx.sh stop FOLDER                                                                        stops it
#
# With --build, HTML is a folder that millrace build has written, and its snippets are part of the configuration.
# With --plain, nginx has its default settings: neither gzip nor a character set.
# With --snippet, the server includes FILE. With --site, nginx passes all requests on to another server.
# FOLDER is a new or empty folder for the configuration, logs and process ids. If PORT is 0 or omitted, it is a free port. HTML is the
# folder to serve, by default PostgreSQL's manual. The script needs Debian's nginx-light; the manual is in postgresql-doc-15.
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
