// Package mirror synchronises a sink with a source. It uses bounded memory, resumes after a
// crash, and sends as few requests as the source's validators allow.
//
// It compares versions, fetches pages conditionally and concurrently, and deletes pages that a
// complete list no longer names. If a list suddenly lost many pages, it waits until the next
// run confirms this.
package mirror
