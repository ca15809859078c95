#!/usr/bin/env bash
# A real nginx over a folder of HTML, on loopback, with ETag and gzip:
#
#   nginx.sh [--html HTML] FOLDER [PORT]   sets it up in FOLDER, and prints the URL of its home
#   nginx.sh stop FOLDER                   ends what it has started
#
# FOLDER is a new or empty one, for its configuration, logs and ids. PORT is a free one if it is 0 or left out. HTML is the
# folder to serve: PostgreSQL's manual if it is left out. It needs Debian's nginx-light; the manual is postgresql-doc-15.
set -euo pipefail
# shellcheck source=testdata/real/common.bash
. "$(dirname "${BASH_SOURCE[0]}")/common.bash"

html=/usr/share/doc/postgresql-doc-15/html
if [ "${1-}" = --html ]; then
	html=${2:?a folder}
	shift 2
fi
begin "$@"
need nginx nginx-light
[ -f "$html/index.html" ] || absent "$html/index.html" postgresql-doc-15

serve_nginx "$(cd "$html" && pwd)"
ready
