// Package mirror synchronizes a sink with a source. It uses limited memory, resumes after a crash,
// and sends as few requests as the source's validators allow.
//
// It compares versions, fetches pages conditionally and concurrently, and deletes pages that are
// missing from a complete list. If many pages are suddenly missing from a list, they are deleted
// only after the next run confirms this.
package mirror
