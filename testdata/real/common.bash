# What the scripts of this folder share; they read it with ".". A script has its processes write their ids to
# $folder/*.pid, so that stop ends just those.

PATH=$PATH:/usr/sbin

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

# absent says what is to be installed. Its status, 3, tells that from a failure.
absent() {
	echo "${0##*/}: there is no $1: apt-get install --no-install-recommends $2" >&2
	exit 3
}

# need TOOL PACKAGE wants a command.
need() {
	command -v "$1" >/dev/null || absent "$1" "$2"
}

# stop ends the processes whose ids are in a folder, if they still are what they were: they name the folder.
stop() {
	local file pid
	for file in "$1"/*.pid; do
		[ -s "$file" ] || continue
		pid=$(cat "$file")
		if { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qF "$1"; then
			# Workers of PHP are children that outlive their parent.
			kill $(ps -o pid= --ppid "$pid") "$pid" 2>/dev/null || true
			for _ in $(seq 100); do
				kill -0 "$pid" 2>/dev/null || break
				sleep 0.1
			done
		fi
		rm -f "$file"
	done
}

# begin reads the arguments: "stop FOLDER" ends here; else $folder is there and empty, and $port is free.
begin() {
	if [ "${1-}" = stop ]; then
		[ -d "${2:?a folder}" ] || exit 0
		stop "$(cd "$2" && pwd)"
		exit
	fi
	[ $# = 1 ] || [ $# = 2 ] || die "want FOLDER [PORT], or stop FOLDER"
	mkdir -p "$1"
	folder=$(cd "$1" && pwd)
	[ -z "$(ls -A "$folder")" ] || die "$folder is not empty"
	port=${2-0}
	need curl curl
	if [ "$port" = 0 ]; then
		port=$(free_port)
	fi
	home=http://127.0.0.1:$port/
	exec 9>&2 # where the reason goes, wherever a command writes to when it fails
	trap '[ $? = 0 ] || failed' EXIT
}

# failed ends what has been started, and shows why.
failed() {
	stop "$folder"
	tail -n 20 "$folder"/*.log >&9 2>/dev/null || true
}

# free_port finds a port on which nobody listens.
free_port() {
	local p
	for _ in $(seq 100); do
		p=$((20000 + RANDOM % 12000))
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null; then
			echo "$p"
			return
		fi
	done
	die "there is no free port"
}

# serve_nginx serves a folder; $in_http and $in_server are more for those blocks. Its workers are whoever calls: a scratch folder is often closed to others.
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

# ready waits until the home page is there, and prints its URL.
ready() {
	for _ in $(seq 200); do
		if curl -m 10 -sfo /dev/null "$home"; then
			echo "$home"
			return
		fi
		kill -0 "$(cat "$folder"/*.pid | tail -n 1)" 2>/dev/null || break
		sleep 0.1
	done
	die "the site does not answer"
}
