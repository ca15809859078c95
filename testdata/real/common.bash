# Functions that the scripts of this folder share; they read this file with ".". The processes of a script write their ids to
# $folder/*.pid, so that stop ends only these processes.

PATH=$PATH:/usr/sbin

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

# absent prints what must be installed. Its exit status, 3, distinguishes this from a failure.
absent() {
	echo "${0##*/}: $1 not found; run apt-get install --no-install-recommends $2" >&2
	exit 3
}

# need TOOL PACKAGE exits unless a command is installed.
need() {
	command -v "$1" >/dev/null || absent "$1" "$2"
}

# stop ends the processes whose ids are in a folder, if their command lines still contain the folder.
stop() {
	local file pid
	for file in "$1"/*.pid; do
		[ -s "$file" ] || continue
		pid=$(cat "$file")
		if { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qF "$1"; then
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

# begin reads the arguments. It runs "stop FOLDER" and exits; otherwise, it sets $folder to an empty folder and $port to a free port.
begin() {
	if [ "${1-}" = stop ]; then
		[ -d "${2:?a folder}" ] || exit 0
		stop "$(cd "$2" && pwd)"
		exit
	fi
	[ $# = 1 ] || [ $# = 2 ] || die "usage: FOLDER [PORT], or stop FOLDER"
	mkdir -p "$1"
	folder=$(cd "$1" && pwd)
	[ -z "$(ls -A "$folder")" ] || die "$folder is not empty"
	port=${2-0}
	need curl curl
	if [ "$port" = 0 ]; then
		port=$(free_port)
	fi
	home=http://127.0.0.1:$port/
	exec 9>&2 # the reason of a failure is printed here, even if a command writes elsewhere
	trap '[ $? = 0 ] || failed' EXIT
}

# failed stops the started processes, and prints the reason.
failed() {
	stop "$folder"
	tail -n 20 "$folder"/*.log >&9 2>/dev/null || true
}

# free_port prints a port on which no process listens.
free_port() {
	local p
	for _ in $(seq 100); do
		p=$((20000 + RANDOM % 12000))
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null; then
			echo "$p"
			return
		fi
	done
	die "no free port found"
}

# serve_nginx serves a folder. $in_http and $in_server are added to these blocks. Its workers run as the caller, because other users often cannot read a scratch folder.
serve_nginx() {
	local user=""
	[ "$(id -u)" != 0 ] || user="user root;"
	cat >"$folder/nginx.conf" <<CONF
$user
worker_processes 1;
daemon off;
pid $folder/nginx.id;
error_log $folder/error.log warn;
events { worker_connections 256; }
http {
	include /etc/nginx/mime.types;
	access_log $folder/access.log;
	client_body_temp_path $folder/tmp.body;
	proxy_temp_path $folder/tmp.proxy;
	fastcgi_temp_path $folder/tmp.fastcgi;
	uwsgi_temp_path $folder/tmp.uwsgi;
	scgi_temp_path $folder/tmp.scgi;
	sendfile on;
	etag on;
	${more-charset utf-8; gzip on; gzip_types text/css application/xml text/plain; gzip_vary on;}
	${in_http-}
	server {
		listen 127.0.0.1:$port;
		root $1;
		index index.html;
		error_page 404 /404.html;
		${in_server-}
	}
}
CONF
	nginx -p "$folder/" -c "$folder/nginx.conf" -e "$folder/error.log" </dev/null >"$folder/nginx.log" 2>&1 9>&- &
	echo $! >"$folder/nginx.pid"
}

# ready waits until the home page is served, and prints its URL.
ready() {
	for _ in $(seq 200); do
		if curl -m 10 -sfo /dev/null "$home"; then
			echo "$home"
			return
		fi
		kill -0 "$(cat "$folder"/*.pid | tail -n 1)" 2>/dev/null || break
		sleep 0.1
	done
	die "the site does not respond"
}
