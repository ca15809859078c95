// Package jsonio reads JSON from untrusted sources.
//
//   - [Decode] and [Unmarshal] read a small document as a whole.
//   - [Reader] walks a document of any size in constant memory, such as a list
//     of a million items inside an object with members in any order.
//
// Both are strict (RFC 8259 and RFC 7493): duplicate names, invalid UTF-8, a byte order mark
// and data after the value are errors. Unknown members are ignored, and names are case-sensitive.
// [Limits] bounds size, depth and counts.
//
// The error for a malformed document is a *millrace.FormatError with a Position such as "line 3,
// byte 127 (/items/4/etag)": the line counted from 1, the byte from 0, and the JSON Pointer of the
// value, if there is one. The caller sets Protocol and URL. The error for a document over a limit
// is millrace.ErrTooLarge. The error of a failing reader is wrapped.
package jsonio
