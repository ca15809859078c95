#!/usr/bin/env bash
# Runs a real WordPress in a scratch folder, on loopback, with its own MariaDB:
#
#   wordpress.sh [--subfolder] [--no-rest] [--plain] [--pages N] [--home URL] FOLDER   starts it, and prints the URL of the home page
#   wordpress.sh wp FOLDER COMMAND [ID]                                   runs wordpress/wp.php; see that file
#   wordpress.sh stop FOLDER                                              stops it
#
# --subfolder installs it under /blog/, --no-rest makes its REST API refuse all clients, --plain uses links such as /?p=1,
# and --pages sets the number of posts (default: 300). With --home, its pages have that address, at which another server passes
# requests on to the printed URL. The script needs Debian's wordpress, mariadb-server, php-cli and php-mysql.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() {
	echo "wordpress.sh: $*" >&2
	exit 1
}

# absent prints what must be installed. Its exit status, 3, distinguishes this from a failure.
absent() {
	echo "wordpress.sh: $1 not found; run apt-get install --no-install-recommends wordpress mariadb-server php-cli php-mysql" >&2
	exit 3
}

# A database server refuses to run as root, and a web server should not run as root.
as=()
if [ "$(id -u)" = 0 ]; then
	as=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
fi

# stop ends the processes whose ids are in the folder, if they are still the same processes.
stop() {
	local file pid
	for file in "$1"/php.pid "$1"/mariadb.pid; do
		[ -s "$file" ] || continue
		pid=$(cat "$file")
		if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "$1"; then
			# The workers of PHP are child processes that outlive their parent.
			kill $(ps -o pid= --ppid "$pid") "$pid" 2>/dev/null || true
			for _ in $(seq 100); do
				kill -0 "$pid" 2>/dev/null || break
				sleep 0.1
			done
		fi
		rm -f "$file"
	done
}

# wp runs the helper in the WordPress of the site.
wp() {
	local folder=$1
	shift
	HOME=$folder "${as[@]}" php -d display_errors=stderr -d error_reporting=22527 "$here/wordpress/wp.php" "$(cat "$folder/wp-load")" "$@"
}

case ${1-} in
stop)
	stop "$(cd "${2:?a folder}" && pwd)"
	exit
	;;
wp)
	folder=$(cd "${2:?a folder}" && pwd)
	shift 2
	wp "$folder" "$@"
	exit
	;;
esac

path=/ rest=1 plain=0 pages=300 front=""
while [ $# -gt 0 ]; do
	case $1 in
	--subfolder) path=/blog/ ;;
	--no-rest) rest=0 ;;
	--plain) plain=1 ;;
	--pages) pages=$2 && shift ;;
	--home) front=$2 && shift ;;
	-*) die "unknown option $1" ;;
	*) break ;;
	esac
	shift
done
[ $# = 1 ] || die "usage: wordpress.sh [options] FOLDER"
for tool in mariadbd mariadb-install-db mariadb php curl; do
	command -v "$tool" >/dev/null || PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || absent "$tool"
done
PATH=$PATH:/usr/sbin
source=/usr/share/wordpress
[ -f $source/wp-load.php ] || absent "$source"

mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ -z "$(ls -A "$folder")" ] || die "$folder is not empty"
chmod a+rx "$folder"
www=$folder/www$path
mkdir -p "$www/wp-content/mu-plugins" "$www/wp-content/themes/mill" "$folder/db" "$folder/tmp"
[ ${#as[@]} = 0 ] || chown nobody:nogroup "$folder/db" "$folder/tmp"
trap 'stop "$folder"; tail -n 20 "$folder"/tmp/*.log >&2 || true' ERR

# The database, with a socket and without a port.
"${as[@]}" mariadb-install-db --no-defaults --datadir="$folder/db" --auth-root-authentication-method=normal \
	--skip-test-db >"$folder/tmp.log" 2>&1 || { cat "$folder/tmp.log" >&2; die "mariadb-install-db failed"; }
"${as[@]}" mariadbd --no-defaults --datadir="$folder/db" --socket="$folder/db/s" --skip-networking --skip-grant-tables \
	--innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=32M --performance-schema=off --skip-log-bin \
	--log-error="$folder/tmp/mariadb.log" --pid-file="$folder/db/pid" </dev/null >/dev/null 2>&1 &
echo $! >"$folder/mariadb.pid"
for _ in $(seq 200); do
	mariadb --no-defaults --connect-timeout=5 --socket="$folder/db/s" -e 'CREATE DATABASE wordpress CHARACTER SET utf8mb4' 2>/dev/null && break
	sleep 0.1
done
mariadb --no-defaults --connect-timeout=5 --socket="$folder/db/s" -e 'USE wordpress' || die "MariaDB does not respond"

# The program, without the files that only browsers need.
tar -C $source -h --exclude=./.htaccess --exclude=./wp-config.php --exclude=./wp-content --exclude=./wp-includes/js \
	--exclude=./wp-includes/images --exclude=./wp-admin/css --exclude=./wp-admin/js --exclude=./wp-admin/images -cf - . |
	tar -C "$www" --no-same-owner -xf -
port=$(php -r '$s = stream_socket_server("tcp://127.0.0.1:0"); echo preg_replace("/.*:/", "", stream_socket_get_name($s, false));')
home=http://127.0.0.1:$port$path
front=${front:-$home}
cat >"$www/wp-config.php" <<PHP
<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:$folder/db/s');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_HOME', '${front%/}');
define('WP_SITEURL', '${front%/}');
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_DEBUG_DISPLAY', false);
ini_set('display_errors', '0');
define('MILL_REST', (bool) $rest);
define('MILL_PLAIN', (bool) $plain);
define('MILL_POSTS', $pages);
foreach (['AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT', 'LOGGED_IN_SALT', 'NONCE_SALT'] as \$key) {
	define(\$key, 'of a test, on loopback: ' . \$key);
}
\$table_prefix = 'wp_';
if (!defined('ABSPATH')) {
	define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';
PHP
cp "$here/wordpress/plugin.php" "$www/wp-content/mu-plugins/mill.php"
cp "$here"/wordpress/theme/* "$www/wp-content/themes/mill/"
[ $path = / ] || echo '<!DOCTYPE html><title>Not the blog</title><p>The blog is <a href="/blog/">elsewhere</a>.' >"$folder/www/index.html"
chmod -R a+rX "$folder/www"
echo "$www/wp-load.php" >"$folder/wp-load"
wp "$folder" install >"$folder/tmp.log"

PHP_CLI_SERVER_WORKERS=4 MILL_PATH=$path HOME=$folder "${as[@]}" php -d opcache.enable=1 -d opcache.validate_timestamps=0 \
	-d display_errors=stderr -d error_reporting=22527 -S "127.0.0.1:$port" -t "$folder/www" "$here/wordpress/router.php" \
	</dev/null >"$folder/tmp/php.log" 2>&1 &
echo $! >"$folder/php.pid"
for _ in $(seq 200); do
	curl -m 10 -sfo /dev/null "$home" && break
	sleep 0.1
done
curl -m 10 -sfo /dev/null "$home" || die "the site does not respond"
echo "$home"
