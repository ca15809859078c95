#!/bin/sh
# Runs after the files of a deb or rpm are removed. Configuration, stores and the user remain until
# a deb is purged.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /etc/millrace /var/lib/millrace
	if getent passwd millrace >/dev/null; then
		userdel millrace || : # userdel reports why it fails, such as a running process of the user
	fi
fi
