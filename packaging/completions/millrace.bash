# bash completion of millrace, generated from its flags
_millrace() {
	local i word words='' command='' cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}
	[[ $cur == = ]] && cur=
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		[[ $command/ =~ ^(|sites|keys|scp|arc)/$ && $word != -* ]] && command=${command:+$command }$word
	done
	case "$command $prev" in
	'serve --log-level') words='debug info warn error' ;;
	'serve --authors') words='name hidden' ;;
	'serve --as') words='wordpress crawl markdown folder mirror' ;;
	'ready --log-level') words='debug info warn error' ;;
	'build --log-level') words='debug info warn error' ;;
	'build --authors') words='name hidden' ;;
	'build --host') words='github gitlab netlify cloudflare vercel s3 nginx caddy plain' ;;
	'build --as') words='wordpress crawl markdown folder mirror' ;;
	'pull --log-level') words='debug info warn error' ;;
	'pull --purpose') words='ai-input ai-train search' ;;
	'watch --log-level') words='debug info warn error' ;;
	'watch --purpose') words='ai-input ai-train search' ;;
	'watch --from') words='start now' ;;
	'watch --content') words='none text markdown' ;;
	'discover --log-level') words='debug info warn error' ;;
	'discover --purpose') words='ai-input ai-train search' ;;
	'check --log-level') words='debug info warn error' ;;
	'check --profile') words='agent-ready' ;;
	'read --log-level') words='debug info warn error' ;;
	'extract --log-level') words='debug info warn error' ;;
	'search --log-level') words='debug info warn error' ;;
	'verify --log-level') words='debug info warn error' ;;
	'export --log-level') words='debug info warn error' ;;
	'export --format') words='jsonl markdown parquet csv atom' ;;
	'report --log-level') words='debug info warn error' ;;
	'report --as') words='wordpress crawl markdown folder mirror' ;;
	'mcp --log-level') words='debug info warn error' ;;
	'snippet --log-level') words='debug info warn error' ;;
	'up --log-level') words='debug info warn error' ;;
	'up --place') words='alongside front standalone' ;;
	'up --apply') words='nginx caddy systemd' ;;
	'init --log-level') words='debug info warn error' ;;
	'config --log-level') words='debug info warn error' ;;
	'version --log-level') words='debug info warn error' ;;
	'sites add --log-level') words='debug info warn error' ;;
	'sites add --priority') words='low normal high' ;;
	'sites remove --log-level') words='debug info warn error' ;;
	'sites list --log-level') words='debug info warn error' ;;
	'sites pause --log-level') words='debug info warn error' ;;
	'sites resume --log-level') words='debug info warn error' ;;
	'keys add --log-level') words='debug info warn error' ;;
	'keys add --as') words='wordpress crawl markdown folder mirror' ;;
	'keys list --log-level') words='debug info warn error' ;;
	'keys list --as') words='wordpress crawl markdown folder mirror' ;;
	'keys revoke --log-level') words='debug info warn error' ;;
	'keys revoke --as') words='wordpress crawl markdown folder mirror' ;;
	'keys sign --log-level') words='debug info warn error' ;;
	'keys password --log-level') words='debug info warn error' ;;
	'keys directory --log-level') words='debug info warn error' ;;
	'scp inspect --log-level') words='debug info warn error' ;;
	'scp verify --log-level') words='debug info warn error' ;;
	'scp cat --log-level') words='debug info warn error' ;;
	'arc snapshot --log-level') words='debug info warn error' ;;
	'arc lint --log-level') words='debug info warn error' ;;
	'arc annotate --log-level') words='debug info warn error' ;;
	*)
		case "$command" in
		'') words='serve ready build pull watch sites discover check read extract search verify export report mcp keys scp arc snippet up init config version help ' ;;
		'serve') words=' --json --quiet --log-level --config --allow-private --delay --contact --max-pages --keep --drop --exclude --authors --site-contact --rehost --llms-full --hub --embed-url --embed-model --require-key --public-protocols --rate --proxies --bot --files-rate --tls-cert --tls-key --indexnow --origin --sign-responses --web-bot-auth --events --access-log --events-to --metrics --dashboard --dashboard-password --listen --base-url --as --store --artifacts --site --request-log' ;;
		'ready') words=' --json --quiet --log-level --config --tls-cert --tls-key --listen --base-url' ;;
		'build') words=' --json --quiet --log-level --config --allow-private --delay --contact --max-pages --keep --drop --exclude --authors --site-contact --rehost --llms-full --hub --out --base-url --host --complete --verbose --force --as --store --site' ;;
		'pull') words=' --json --quiet --log-level --config --allow-private --delay --contact --max-pages --max-bytes --keep --drop --sign-key --sign-agent --max-list --check-page-links --kwh-per-gb --bytes-per-token --html-per-text --html-compression --store --via --purpose --workers --key-file --ignore-policy' ;;
		'watch') words=' --json --quiet --log-level --config --allow-private --delay --contact --max-pages --max-bytes --keep --drop --sign-key --sign-agent --max-list --check-page-links --kwh-per-gb --bytes-per-token --html-per-text --html-compression --store --via --purpose --workers --key-file --ignore-policy --callback --callback-listen --all --request-rate --byte-rate --retention --min-interval --max-interval --events --from --content --webhook --webhook-secret-file' ;;
		'discover') words=' --json --quiet --log-level --config --allow-private --delay --contact --max-list --check-page-links --purpose --key-file --ignore-policy' ;;
		'check') words=' --json --quiet --log-level --config --allow-private --delay --contact --protocol --profile --sarif --key-file' ;;
		'read') words=' --json --quiet --log-level --config --allow-private --delay --contact --keep --drop --url' ;;
		'extract') words=' --json --quiet --log-level --config --allow-private --delay --contact --keep --drop --url --text --explain' ;;
		'search') words=' --json --quiet --log-level --config --embed-url --embed-model --site --label --store --limit --min-score' ;;
		'verify') words=' --json --quiet --log-level --config --artifacts --repair' ;;
		'export') words=' --json --quiet --log-level --config --site --label --store --format --out --since' ;;
		'report') words=' --json --quiet --log-level --config --kwh-per-gb --bytes-per-token --html-per-text --html-compression --allow-private --delay --contact --site --as --store --label --since --csv' ;;
		'mcp') words=' --json --quiet --log-level --config --allow-private --delay --contact --embed-url --embed-model --store --label --max-pages --fetch --listen --require-key --rate' ;;
		'snippet') words='nginx caddy systemd --json --quiet --log-level --config --listen --base-url' ;;
		'up') words=' --json --quiet --log-level --config --allow-private --delay --contact --place --origin --base-url --listen --policy-allow --policy-refuse --dashboard --yes --apply --undo' ;;
		'init') words=' --json --quiet --log-level --config --allow-private --delay --contact' ;;
		'config') words=' --json --quiet --log-level --config' ;;
		'version') words=' --json --quiet --log-level --config' ;;
		'help') words=' --all' ;;
		'sites') words='add remove list pause resume ' ;;
		'sites add') words=' --json --quiet --log-level --config --store --allow-private --delay --contact --label --priority --min-interval --max-interval --webhook --skip-invalid' ;;
		'sites remove') words=' --json --quiet --log-level --config --store --allow-private --delay --contact --label --delete-pages' ;;
		'sites list') words=' --json --quiet --log-level --config --store --label' ;;
		'sites pause') words=' --json --quiet --log-level --config --store --allow-private --delay --contact --label' ;;
		'sites resume') words=' --json --quiet --log-level --config --store --allow-private --delay --contact --label' ;;
		'keys') words='add list revoke sign password directory ' ;;
		'keys add') words=' --json --quiet --log-level --config --as --store --scope --key-file --expires' ;;
		'keys list') words=' --json --quiet --log-level --config --as --store' ;;
		'keys revoke') words=' --json --quiet --log-level --config --as --store' ;;
		'keys sign') words=' --json --quiet --log-level --config' ;;
		'keys password') words=' --json --quiet --log-level --config' ;;
		'keys directory') words=' --json --quiet --log-level --config --out --base-url' ;;
		'scp') words='inspect verify cat ' ;;
		'scp inspect') words=' --json --quiet --log-level --config --allow-private --delay --contact' ;;
		'scp verify') words=' --json --quiet --log-level --config --allow-private --delay --contact' ;;
		'scp cat') words=' --json --quiet --log-level --config --allow-private --delay --contact' ;;
		'arc') words='snapshot lint annotate ' ;;
		'arc snapshot') words=' --json --quiet --log-level --config --allow-private --delay --contact --keep --drop --url' ;;
		'arc lint') words=' --json --quiet --log-level --config --allow-private --delay --contact --url' ;;
		'arc annotate') words=' --json --quiet --log-level --config --allow-private --delay --contact --url --out' ;;
		esac
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o default -F _millrace millrace
