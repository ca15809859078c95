#!/usr/bin/env bash
# Runs a real Caddy on loopback, which serves a folder:
#
#   caddy.sh --html HTML [--site URL] [--snippet FILE] [--port PORT] FOLDER   starts it in FOLDER, and prints the URL of the home page
#   caddy.sh stop FOLDER                                                      stops it
#
# HTML is a folder that millrace build has written, with its snippet, unless --snippet names the snippet of
# millrace alongside. With --site, Caddy passes all requests on to another server.
# FOLDER is a new or empty folder for the configuration, logs and process ids. The script needs Debian's caddy.
set -euo pipefail
# shellcheck source=testdata/real/common.bash
. "$(dirname "${BASH_SOURCE[0]}")/common.bash"

html="" wanted=0 snippet="" site=""
while [ $# -gt 1 ]; do
	case $1 in
	--html) html=${2:?a folder} && shift 2 ;;
	--site) site=${2:?a URL} && shift 2 ;;
	--snippet) snippet=${2:?a file} && shift 2 ;;
	--port) wanted=${2:?a port} && shift 2 ;;
	*) break ;;
	esac
done
[ $# != 1 ] || set -- "$1" "$wanted"
begin "$@"
need caddy caddy
above="" inside="import $html/.millrace/Caddyfile" serves=file_server
[ -z "$snippet" ] || above="import $snippet" inside="import millrace"
[ -n "$snippet" ] || [ -f "$html/.millrace/Caddyfile" ] || die "$html was not written by millrace build"
[ -z "$site" ] || serves="reverse_proxy ${site%/}"

cat >"$folder/Caddyfile" <<CONF
{
	admin off
	auto_https off
}
$above
http://127.0.0.1:$port {
	bind 127.0.0.1
	root * $html
	$inside
	$serves
}
CONF
XDG_DATA_HOME=$folder XDG_CONFIG_HOME=$folder caddy run --config "$folder/Caddyfile" --adapter caddyfile \
	</dev/null >"$folder/caddy.log" 2>&1 9>&- &
echo $! >"$folder/caddy.pid"
ready
