#!/bin/sh
# Adds the documents of millrace to a built site, and checks them, in the CI of any forge:
#
#   millrace.sh FOLDER --base-url URL [flags of millrace build]
#
# It fails if the build fails or a document breaks a MUST of a specification. It does not fail for a SHOULD. Keep
# .millrace-ci/store.db from run to run: with it, the dates of unchanged pages stay. The command is downloaded if it
# is not installed: the newest release, or MILLRACE_VERSION. MILLRACE_RELEASES is the URL of the releases.
set -eu

die() {
	echo "millrace.sh: $*" >&2
	exit 1
}

# fetch URL FILE downloads a file.
fetch() {
	if command -v curl >/dev/null; then curl -fsSL -o "$2" "$1"; else wget -q -O "$2" "$1"; fi
}

# install downloads the command and compares it with its checksum.
install() {
	case $(uname -m) in
	x86_64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) die "no release for $(uname -m); install millrace first" ;;
	esac
	at=${MILLRACE_RELEASES:-https://github.com/millrace/millrace/releases}
	case ${MILLRACE_VERSION:-latest} in
	latest) at=$at/latest/download ;;
	*) at=$at/download/v${MILLRACE_VERSION#v} ;;
	esac
	fetch "$at/checksums.txt" "$work/checksums.txt"
	grep "  millrace_[^ ]*_linux_$arch\.tar\.gz\$" "$work/checksums.txt" >"$work/sum" || die "$at/checksums.txt names no archive for linux_$arch"
	archive=$(sed 's/.* //' "$work/sum")
	fetch "$at/$archive" "$work/$archive"
	(cd "$work" && sha256sum -c sum >&2) || die "$archive does not have its checksum"
	tar -xzf "$work/$archive" -C "$work" millrace
	PATH=$PWD/$work:$PATH
}

[ $# -gt 1 ] || die "usage: millrace.sh FOLDER --base-url URL [flags of millrace build]"
folder=${1%/}
shift
work=.millrace-ci
[ ! -e "$folder/.millrace" ] || die "$folder has the documents of an earlier run; let the generator write to an empty folder"
mkdir -p "$work"
rm -rf "$work/site" "$work/findings.sarif"
command -v millrace >/dev/null || install

millrace build "$folder" --out "$work/site" --store "$work/store.db" --quiet "$@" >"$work/report.txt" || {
	cat "$work/report.txt"
	exit 1
}
cp -R "$work/site/." "$folder/"
status=0
millrace check "$folder" --quiet --sarif "$work/findings.sarif" >"$work/check.txt" || status=$?
echo >>"$work/report.txt"
cat "$work/check.txt" >>"$work/report.txt"
cat "$work/report.txt"

if [ "${GITHUB_ACTIONS-}" = true ]; then
	awk '
		/^(MUST|SHOULD)  / { level = $1 == "MUST" ? "error" : "warning"; rule = $2 }
		/^  at    / { at = substr($0, 9); gsub(/%/, "%25", at); gsub(/:/, "%3A", at); gsub(/,/, "%2C", at) }
		/^  got   / { got = substr($0, 9) }
		/^  want  / { text = got "; want " substr($0, 9); gsub(/%/, "%25", text); print "::" level " file=" at ",title=" rule "::" text }
	' "$work/check.txt"
	# shellcheck disable=SC2016 # the fence of a block of Markdown
	{ echo '```text' && cat "$work/report.txt" && echo '```'; } >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
fi
exit "$status"
