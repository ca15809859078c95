<?php
// Content types of the test site in addition to posts and pages.
// The plugin requires a script that does not exist.
remove_action('wp_head', 'print_emoji_detection_script', 7);
add_action('init', function () {
	register_post_type('recipe', [
		'public' => true, 'label' => 'Recipes', 'show_in_rest' => true, 'rest_base' => 'recipes', 'has_archive' => true,
		'supports' => ['title', 'editor', 'author', 'excerpt'], 'taxonomies' => ['post_tag'],
	]);
	// In the API, but without pages on the site.
	register_post_type('ledger', [
		'public' => false, 'label' => 'Ledgers', 'show_in_rest' => true, 'rest_base' => 'ledgers', 'supports' => ['title', 'editor'],
	]);
	// Public, but not in the API.
	register_post_type('errand', ['public' => true, 'label' => 'Errands', 'show_in_rest' => false]);
});
add_filter('rest_authentication_errors', function ($error) {
	return MILL_REST ? $error : new WP_Error('rest_disabled', 'The API of this site is closed.', ['status' => 403]);
});
add_filter('wp_untrash_post_status', 'wp_untrash_post_set_previous_status', 10, 3);
