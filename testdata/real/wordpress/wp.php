<?php
// php wp.php WP-LOAD COMMAND [ID]
//
//   install   fills an empty WordPress with the test site
//   list      one line for each post, as JSON: id, type, status, protected, link, title, secret
//   edit trash restore rename protect publish draft touch   perform the action on the post ID
//   add       publishes another post, and prints its id
//   flood     publishes 120 more posts
//
// secret is a word that occurs only in a private post.

[, $load, $command] = $argv;
$id = (int) ($argv[3] ?? 0);
$_SERVER['HTTP_HOST'] = '127.0.0.1';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
$_SERVER['REQUEST_METHOD'] = 'GET';
if ($command === 'install') {
	define('WP_INSTALLING', true);
}
require $load;
kses_remove_filters();

const WORDS = 'water wheel mill race sluice weir stone grain flour sack hopper damsel runner bedstone furrow land shaft gear tooth
	pond leat tail flood drought ice spring autumn winter summer miller baker farmer carter ledger toll measure peck bushel rye barley oat
	wheat spelt bran sieve bolt cloth dust lamp rope pulley hoist beam floor loft door window bridge ford bank willow heron otter eel trout
	Mühle écluse rueda 水車 мельница młyn kvarn mølle';

function words(int $n): string {
	static $all = null;
	$all ??= preg_split('/\s+/u', WORDS);
	$out = [];
	while ($n-- > 0) {
		$out[] = $all[mt_rand(0, count($all) - 1)];
	}
	return implode(' ', $out);
}

function sentence(): string {
	return 'The ' . words(mt_rand(4, 14)) . '.';
}

function paragraph(): string {
	$out = [];
	for ($i = mt_rand(1, 4); $i > 0; $i--) {
		$out[] = sentence();
	}
	return str_replace(' mill ', ' <em>mill</em> ', implode(' ', $out));
}

function block(string $name, string $html, bool $marked): string {
	return $marked ? "<!-- wp:$name -->\n$html\n<!-- /wp:$name -->\n\n" : "$html\n\n";
}

// content returns the text of a post in the form of the block editor, or in that of the classic editor.
function content(bool $marked): string {
	$p = fn(string $s) => block('paragraph', $marked ? "<p>$s</p>" : $s, $marked);
	$out = $p(paragraph()) . $p('See the <a href="https://mill.example/' . mt_rand(1, 99) . '">' . words(2) . '</a> &amp; the <strong>' . words(1) . '</strong>.');
	for ($i = mt_rand(1, 3); $i > 0; $i--) {
		$out .= block('heading', '<h2>' . ucfirst(words(3)) . '</h2>', $marked) . $p(paragraph());
		switch (mt_rand(0, 5)) {
			case 0:
				$out .= block('list', '<ul><li>' . words(3) . '</li><li>' . words(4) . '<ul><li>' . words(2) . '</li></ul></li></ul>', $marked);
				break;
			case 1:
				$out .= block('code', '<pre class="wp-block-code"><code>func ' . 'grind(n int) { // [gallery ids="1"]' . "\n\treturn n &lt; 2\n}</code></pre>", $marked);
				break;
			case 2:
				$out .= block('table', '<figure class="wp-block-table"><table><thead><tr><th>grain</th><th>sacks</th></tr></thead><tbody><tr><td>'
					. words(1) . '</td><td>' . mt_rand(1, 90) . '</td></tr></tbody></table></figure>', $marked);
				break;
			case 3:
				$out .= block('quote', '<blockquote class="wp-block-quote"><p>' . sentence() . '</p><cite>A miller</cite></blockquote>', $marked);
				break;
			case 4:
				$out .= block('image', '<figure class="wp-block-image"><img src="https://mill.example/i/' . mt_rand(1, 99) . '.jpg" alt="' . words(2)
					. '"/><figcaption>' . words(4) . '</figcaption></figure>', $marked);
				break;
			default:
				$out .= $p(paragraph());
		}
	}
	return $out;
}

// add creates a post, with a secret if the post is private.
function add(array $post): int {
	static $n = 0;
	$n++;
	$open = ($post['post_status'] ?? 'publish') === 'publish' && empty($post['post_password']) && !in_array($post['post_type'] ?? 'post', ['ledger', 'errand']);
	$secret = $open ? '' : 'quern' . base_convert((string) (7919 * $n + 104729), 10, 26) . 'hush';
	$post += [
		'post_status' => 'publish',
		'post_title' => ucfirst(words(3)) . " No. $n",
		'post_content' => content($n % 2 === 0),
		'post_author' => 1 + $n % 3,
		'post_date_gmt' => gmdate('Y-m-d H:i:s', 1577836800 + 86400 * $n),
	];
	$post['post_date'] = get_date_from_gmt($post['post_date_gmt']);
	if (!$open) {
		$post['post_title'] .= " $secret";
		$post['post_content'] = "<p>$secret</p>" . $post['post_content'];
		$post['post_excerpt'] = "$secret in short";
	}
	$id = wp_insert_post(wp_slash($post), true);
	if (is_wp_error($id)) {
		throw new Exception($id->get_error_message());
	}
	if (!$open) {
		add_post_meta($id, '_secret', $secret);
	}
	return $id;
}

// age dates posts back, each to a different time.
function age(): void {
	global $wpdb;
	$wpdb->query("UPDATE $wpdb->posts SET post_modified_gmt = '2024-01-01' + INTERVAL ID MINUTE, post_modified = '2024-01-01' + INTERVAL ID + 120 MINUTE");
	wp_cache_flush();
}

function install(): void {
	global $wpdb, $wp_rewrite;
	require_once ABSPATH . 'wp-admin/includes/upgrade.php';
	add_filter('pre_wp_mail', '__return_true');
	wp_install('The Mill &amp; Race', 'login-of-the-miller', 'miller@mill.example', true, '', 'a password');
	switch_theme('mill');
	update_option('timezone_string', 'Europe/Madrid');
	update_option('date_format', 'Y-m-d');
	$wp_rewrite->set_permalink_structure(MILL_PLAIN ? '' : '/%year%/%postname%/');
	do_action('init');
	wp_update_user(['ID' => 1, 'display_name' => 'Ada Miller', 'user_nicename' => 'login-of-the-miller']);
	wp_insert_user(['user_login' => 'carter', 'user_pass' => 'x', 'user_email' => 'carter@mill.example', 'display_name' => 'Müller & Sohn', 'role' => 'author']);
	wp_insert_user(['user_login' => 'mail', 'user_pass' => 'x', 'user_email' => 'mail@mill.example', 'display_name' => 'mail@mill.example', 'role' => 'author']);
	foreach (get_posts(['post_type' => 'any', 'post_status' => 'any', 'numberposts' => -1]) as $post) {
		wp_delete_post($post->ID, true);
	}
	$cats = [];
	foreach (['Water', 'Stone & Iron', 'Grain'] as $name) {
		$cats[] = wp_insert_term($name, 'category')['term_id'];
	}
	mt_srand(1);
	wp_defer_term_counting(true);
	for ($i = 0; $i < MILL_POSTS; $i++) {
		add([
			'post_category' => $i % 7 ? [$cats[$i % 3]] : [],
			'tags_input' => $i % 2 ? ['wheel', "tag $i"] : [],
			'post_excerpt' => $i % 5 ? '' : 'A short word of it, number ' . $i . '.',
		]);
	}
	$parent = 0;
	for ($i = 0; $i < 20; $i++) {
		$page = add(['post_type' => 'page', 'post_title' => "Page $i", 'post_parent' => $i % 4 ? $parent : 0]);
		$parent = $i % 4 === 3 ? 0 : $page;
		if ($i === 0) {
			$front = $page;
		}
	}
	update_option('show_on_front', 'page');
	update_option('page_on_front', $front);
	update_option('page_for_posts', add(['post_type' => 'page', 'post_title' => 'News', 'post_content' => '']));
	for ($i = 0; $i < 15; $i++) {
		add(['post_type' => 'recipe', 'post_title' => "Bread of kind $i"]);
	}
	add(['post_title' => 'Codes [left] over', 'post_content' => '[vc_row][vc_column width="1/2"]<p>What the [sic] plugin left [1].</p>[/vc_column][/vc_row] [contact-form-7 id="12" title="Form"]']);
	add(['post_title' => 'In parts', 'post_content' => "First part.\n\n<!--more-->\n\nSecond part.\n\n<!--nextpage-->\n\nThird part."]);
	add(['post_title' => '&lt;b&gt; is <em>bold</em> &amp; “quoted”']);
	for ($i = 0; $i < 5; $i++) {
		foreach (['draft', 'private', 'pending', 'trash'] as $status) {
			add(['post_status' => $status]);
			add(['post_status' => $status, 'post_type' => 'page']);
		}
		add(['post_password' => 'a password']);
	}
	add(['post_password' => 'a password', 'post_type' => 'page']);
	add(['post_password' => 'a password', 'post_type' => 'recipe']);
	add(['post_status' => 'draft', 'post_type' => 'recipe']);
	add(['post_type' => 'ledger']);
	add(['post_type' => 'errand']);
	add(['post_status' => 'future', 'post_date_gmt' => gmdate('Y-m-d H:i:s', time() + 86400)]);
	wp_defer_term_counting(false);
	flush_rewrite_rules(false);
	age();
}

function line(WP_Post $post): string {
	return json_encode([
		'id' => $post->ID, 'type' => $post->post_type, 'status' => $post->post_status, 'protected' => $post->post_password !== '',
		'link' => get_permalink($post), 'title' => $post->post_title, 'secret' => (string) get_post_meta($post->ID, '_secret', true),
	], JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
}

function update(int $id, array $what): void {
	$done = wp_update_post(wp_slash(['ID' => $id] + $what), true);
	if (is_wp_error($done)) {
		throw new Exception($done->get_error_message());
	}
}

switch ($command) {
	case 'install':
		install();
		break;
	case 'list':
		foreach (get_post_types() as $type) {
			if (in_array($type, ['revision', 'wp_global_styles', 'wp_template', 'wp_navigation'])) {
				continue;
			}
			foreach (get_posts(['post_type' => $type, 'post_status' => array_keys(get_post_stati()), 'numberposts' => -1, 'orderby' => 'ID', 'order' => 'ASC']) as $post) {
				echo line($post), "\n";
			}
		}
		break;
	case 'edit':
		update($id, ['post_content' => get_post($id)->post_content . "\n\n<p>An edited end.</p>"]);
		break;
	case 'rename':
		update($id, ['post_name' => 'renamed-' . $id]);
		break;
	case 'protect':
		update($id, ['post_password' => 'another password']);
		break;
	case 'draft':
		update($id, ['post_status' => 'draft']);
		break;
	case 'publish':
		// Like the publication of a scheduled post, which keeps its modified date.
		wp_publish_post($id);
		break;
	case 'trash':
		wp_trash_post($id);
		break;
	case 'restore':
		wp_untrash_post($id);
		break;
	case 'add':
		echo add(['post_title' => 'Added', 'post_content' => '<p>Just added.</p>', 'post_date_gmt' => gmdate('Y-m-d H:i:s')]), "\n";
		break;
	case 'flood':
		mt_srand(2);
		for ($i = 0; $i < 120; $i++) {
			add(['post_title' => "Flood $i"]);
		}
		break;
	default:
		fwrite(STDERR, "wp.php: no command $command\n");
		exit(2);
}
