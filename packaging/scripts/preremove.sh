#!/bin/sh
# Runs before a deb ("remove", "upgrade") or rpm (0, 1) goes.
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
