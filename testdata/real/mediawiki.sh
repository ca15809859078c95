#!/usr/bin/env bash
# Runs a real MediaWiki in a scratch folder, on loopback, with SQLite: 85 pages in the main namespace and in those of
# categories, talk and projects, with redirects, a protected page and a deleted page.
#
#   mediawiki.sh [--no-robots] FOLDER [PORT]   starts it in FOLDER, and prints the URL of the home page
#   mediawiki.sh edit FOLDER TITLE             writes standard input to a page
#   mediawiki.sh delete FOLDER TITLE           deletes a page
#   mediawiki.sh stop FOLDER                   stops it
#
# FOLDER is a new or empty folder. If PORT is 0 or omitted, it is a free port. With --no-robots, there is no robots.txt, and each
# page has a dozen links to histories, editors and old revisions. The script needs Debian's mediawiki, php-cli, php-sqlite3,
# php-xml, php-mbstring and php-intl.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=testdata/real/common.bash
. "$here/common.bash"
# shellcheck source=testdata/real/words.bash
. "$here/words.bash"
program=/usr/share/mediawiki

# mw runs a maintenance script of MediaWiki.
mw() {
	MW_CONFIG_FILE=$folder/LocalSettings.php php -d error_reporting=22527 "$program/maintenance/$1.php" "${@:2}"
}

case ${1-} in
edit | delete)
	folder=$(cd "${2:?a folder}" && pwd)
	{
		if [ "$1" = edit ]; then
			mw edit --user Admin --summary "By hand" "${3:?a title}"
		else
			mw deleteBatch -u Admin -r "By hand" <<<"${3:?a title}"
		fi
		mw runJobs
	} >>"$folder/fill.log" 2>&1
	exit
	;;
esac

robots=1
if [ "${1-}" = --no-robots ]; then
	robots=0
	shift
fi
begin "$@"
need php "php-cli php-sqlite3 php-xml php-mbstring php-intl"
[ -f $program/maintenance/install.php ] || absent $program "mediawiki php-sqlite3"
php -r 'exit((int) !(extension_loaded("pdo_sqlite") && extension_loaded("intl")));' || absent "SQLite for PHP" "php-sqlite3 php-intl"

mkdir "$folder/db" "$folder/cache" "$folder/text"
php -d error_reporting=22527 $program/maintenance/install.php --dbtype sqlite --dbpath "$folder/db" --dbname wiki \
	--server "http://127.0.0.1:$port" --scriptpath "" --confpath "$folder" --pass "only-on-loopback" --skins Vector \
	"The Mill Book" Admin >"$folder/install.log" 2>&1
cat >>"$folder/LocalSettings.php" <<PHP
\$wgArticlePath = '/wiki/\$1';
\$wgUsePathInfo = true;
\$wgJobRunRate = 0;
\$wgCacheDirectory = '$folder/cache';
\$wgMainCacheType = CACHE_NONE;
\$wgParserCacheType = CACHE_DB;
\$wgEnableEmail = false;
\$wgUseFileCache = false;
\$wgLanguageCode = 'en';
\$wgAllowExternalImages = false;
PHP

page() { cat >"$folder/text/$1.txt"; }

subject() {
	page "$1" <<-WIKI
		'''$1''' belongs to the ${2} of a mill. $3

		== How it works ==
		$3 The ''miller'' looks at it every morning, before the [[Sluice]] is opened, and writes into [[The Mill Book:About|the book]] what has changed since the day before.

		* It is made of oak, elm or iron.
		* It lasts for $(($4 + 20)) years, if it is kept wet.

		== Measures ==
		{| class="wikitable"
		! Part !! Size
		|-
		| Width || $(($4 * 3 + 40)) cm
		|-
		| Weight || $(($4 * 17 + 90)) kg
		|}

		== See also ==
		* [[$1 (history)]]
		* [[$1 (repair)]]
		* [[$1 (figures)]]
		[[Category:${2^}]]
	WIKI
	each_aspect aspect "$1" "$4"
}

aspect() {
	page "$1 (${3,,})" <<-WIKI
		This is the ${3,,} of the [[$1]]. $4

		== Sources ==
		The words are those of the mill book, volume $2.
		[[Category:$3]]
	WIKI
}

each subject
for group in Wheels Water Stones Work History Repair Figures; do
	page "Category:$group" <<<"Pages of the mill book on ${group,,}."
done
for to in "Water wheel|Overshot wheel" "Channel|Leat" "Dam|Weir" "Gate|Sluice" "Millstone|Runner stone"; do
	page "${to%|*}" <<<"#REDIRECT [[${to#*|}]]"
done
for name in Leat Weir Sluice Toll; do
	page "Talk:$name" <<<"Is the year right? I have read another one on the beam above the door. --[[User:Admin|Admin]]"
done
page "The Mill Book:About" <<<"The mill book is kept by those who keep the mill. Whoever finds a mistake may mend it."
page "The Mill Book:Rules" <<<"Write what you have seen. Nobody but the keepers may change this page."
page "A mistake" <<<"This page was a mistake, and has been deleted."
{
	echo "The mill book tells how a water mill works, and how it is kept working."
	for group in Wheels Water Stones Work; do
		echo
		echo "== $group =="
		for s in "${subjects[@]}"; do
			IFS='|' read -r name of _ <<<"$s"
			[ "${of^}" != "$group" ] || echo "* [[$name]]"
		done
	done
	echo
	echo "It has [[The Mill Book:Rules|rules]], and old words for things: [[Water wheel]], [[Channel]], [[Dam]], [[Gate]], [[Millstone]]."
} | page "Main Page"

{
	mw importTextFiles --overwrite -u Admin -s "From the mill book" "$folder"/text/*.txt
	mw protect -u Admin -r "Rules" "The Mill Book:Rules"
	mw deleteBatch -u Admin -r "A mistake" <<<"A mistake"
	mw runJobs
} >"$folder/fill.log" 2>&1

if [ $robots = 1 ]; then
	printf 'User-agent: *\nDisallow: /index.php\nDisallow: /api.php\nDisallow: /wiki/Special:\n' >"$folder/robots.txt"
fi
# The paths that the configuration of a web server maps: /wiki/TITLE, and files.
cat >"$folder/router.php" <<PHP
<?php
\$path = parse_url(\$_SERVER['REQUEST_URI'], PHP_URL_PATH);
if (\$path === '/robots.txt') {
	http_response_code(is_file('$folder/robots.txt') ? 200 : 404);
	header('Content-Type: text/plain');
	@readfile('$folder/robots.txt');
	return true;
}
if (\$path !== '/' && strncmp(\$path, '/wiki/', 6) !== 0) {
	return false; // a file, or a script such as load.php
}
\$_SERVER['SCRIPT_NAME'] = \$_SERVER['PHP_SELF'] = '/index.php';
\$_SERVER['SCRIPT_FILENAME'] = '/var/lib/mediawiki/index.php';
chdir('/var/lib/mediawiki');
require '/var/lib/mediawiki/index.php';
PHP
MW_CONFIG_FILE=$folder/LocalSettings.php PHP_CLI_SERVER_WORKERS=4 php -d error_reporting=22527 -d display_errors=stderr \
	-d opcache.enable=1 -S "127.0.0.1:$port" -t /var/lib/mediawiki "$folder/router.php" </dev/null >"$folder/php.log" 2>&1 9>&- &
echo $! >"$folder/php.pid"
ready
