<?php
// The rules of the web server: it serves or runs files, and passes all other paths to WordPress.
$path = rawurldecode(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH) ?: '/');
$file = $_SERVER['DOCUMENT_ROOT'] . $path;
if (is_file($file) || $path === '/' && is_file($file . 'index.html')) {
	return false;
}
$home = getenv('MILL_PATH');
if (!str_starts_with($path, $home)) {
	http_response_code(404);
	echo '<!DOCTYPE html><title>Not here</title><p>There is no such page.';
	return true;
}
unset($_SERVER['PATH_INFO']);
$_SERVER['SCRIPT_NAME'] = $_SERVER['PHP_SELF'] = $home . 'index.php';
$_SERVER['SCRIPT_FILENAME'] = $_SERVER['DOCUMENT_ROOT'] . $home . 'index.php';
chdir(dirname($_SERVER['SCRIPT_FILENAME']));
require $_SERVER['SCRIPT_FILENAME'];
