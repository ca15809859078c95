#!/usr/bin/env bash
# A real Caddy over a folder that millrace build has made, on loopback, with the snippet that lies in the folder:
#
#   caddy.sh --html HTML [--port PORT] FOLDER   sets it up in FOLDER, and prints the URL of its home
#   caddy.sh stop FOLDER                        ends what it has started
#
# FOLDER is a new or empty one, for its configuration, logs and ids. It needs Debian's caddy.
set -euo pipefail
# shellcheck source=testdata/real/common.bash
. "$(dirname "${BASH_SOURCE[0]}")/common.bash"

html="" wanted=0
while [ $# -gt 1 ]; do
	case $1 in
	--html) html=${2:?a folder} && shift 2 ;;
	--port) wanted=${2:?a port} && shift 2 ;;
	*) break ;;
	esac
done
[ $# != 1 ] || set -- "$1" "$wanted"
begin "$@"
need caddy caddy
[ -f "$html/.millrace/Caddyfile" ] || die "$html is no build"

cat >"$folder/Caddyfile" <<CONF
{
	admin off
	auto_https off
}
http://127.0.0.1:$port {
	bind 127.0.0.1
	root * $html
	import $html/.millrace/Caddyfile
	file_server
}
CONF
XDG_DATA_HOME=$folder XDG_CONFIG_HOME=$folder caddy run --config "$folder/Caddyfile" --adapter caddyfile \
	</dev/null >"$folder/caddy.log" 2>&1 9>&- &
echo $! >"$folder/caddy.pid"
ready
