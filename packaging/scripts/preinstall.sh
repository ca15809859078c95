#!/bin/sh
# Runs before a deb or rpm is unpacked, because files in it belong to this user.
set -e
getent passwd millrace >/dev/null ||
	useradd --system --user-group --no-create-home --home-dir /var/lib/millrace --shell /usr/sbin/nologin millrace
