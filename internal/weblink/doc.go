// Package weblink reads the metadata of a response: the web links of its header fields (RFC 8288),
// and the links and metadata in the head of its HTML. It fetches nothing.
//
// It returns no errors for any input. It skips invalid links: those without a target, with a scheme
// other than http and https, or with a context other than the response.
package weblink
