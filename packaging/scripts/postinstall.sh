#!/bin/sh
# Runs after a deb or rpm is installed, upgraded or downgraded. The service starts only once its
# owner has written the source.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart millrace
fi
