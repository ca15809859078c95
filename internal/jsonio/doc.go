// Package jsonio reads JSON from untrusted sources.
//
//   - [Decode] and [Unmarshal] read a small document whole.
//   - [Reader] walks a document of any size in flat memory, as a list of a
//     million items inside an object whose members come in any order.
//
// Both are strict (RFC 8259 and RFC 7493): duplicate names, invalid UTF-8, a
// byte order mark and data after the value are errors. Unknown members are
// ignored, known names are case-sensitive. Size, depth and counts are bounded
// by [Limits].
//
// A broken document gives a *millrace.FormatError whose Position reads "line
// 3, byte 127 (/items/4/etag)": the line counted from 1, the byte from 0, and
// the JSON Pointer of the value, where there is one. The caller fills in
// Protocol and URL. A document over a limit gives millrace.ErrTooLarge, and a
// source that fails gives its own error, wrapped.
package jsonio
