#!/bin/sh
# Runs before a deb or rpm is unpacked. It creates the user that owns some files of the package.
set -e
getent passwd millrace >/dev/null ||
	useradd --system --user-group --no-create-home --home-dir /var/lib/millrace --shell /usr/sbin/nologin millrace
