#!/bin/sh
# Runs after a deb or rpm is installed, upgraded or downgraded. It restarts the service only if it is
# running, because a new installation has no source yet.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart millrace
fi
