#!/bin/sh
# Runs before a package is removed or upgraded. $1 is "remove" or "upgrade" for a deb, and 0 or 1 for
# an rpm.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl stop millrace
	fi
	if command -v systemctl >/dev/null; then
		systemctl --quiet disable millrace
	fi
	;;
esac
