// Package arch contains only tests. They check the source, the documentation and the tables in
// testdata against the rules in CONTRIBUTING.md. The tests parse the files of the module
// themselves, because go list may read a stale cache.
//
// Every check is a function of a tree of files. It runs over the module, and over each archive in
// testdata/fail, which contains one violation and the problems that the check must report.
package arch
