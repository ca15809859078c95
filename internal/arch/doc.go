// Package arch holds no code: its tests keep ARCHITECTURE.md, the guide and
// the house's habits true. They parse the files of the module themselves,
// because what go list and go build say may come stale out of a cache.
//
// Every check is a function of a tree of files. It runs over the module, and
// over each archive of testdata/fail, which holds one violation and says what
// must be found.
package arch
