#!/usr/bin/env bash
# A real Caddy over a folder, on loopback:
#
#   caddy.sh --html HTML [--site URL] [--snippet FILE] [--port PORT] FOLDER   sets it up in FOLDER, and prints the URL of its home
#   caddy.sh stop FOLDER                                                      ends what it has started
#
# HTML is a folder that millrace build has made, with the snippet that lies in it, unless --snippet names that of
# millrace alongside. With --site, what it serves is another server's, to which it passes everything on.
# FOLDER is a new or empty one, for its configuration, logs and ids. It needs Debian's caddy.
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
[ -n "$snippet" ] || [ -f "$html/.millrace/Caddyfile" ] || die "$html is no build"
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
