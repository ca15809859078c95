#!/bin/sh
# Runs after the files of a deb or rpm are gone. Configuration, stores and the user stay until a
# deb is purged.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /etc/millrace /var/lib/millrace
	if getent passwd millrace >/dev/null; then
		userdel millrace || : # it says if a login of the user still runs
	fi
fi
