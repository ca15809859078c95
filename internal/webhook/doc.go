// Package webhook posts messages to somebody's server, signed as the Standard
// Webhooks say (https://www.standardwebhooks.com), until they are acknowledged.
//
// A request has three header fields beside its body: webhook-id, which is the
// same each time that a message is sent, webhook-timestamp, when this request
// was made, in seconds since 1970, and webhook-signature: for each secret "v1,"
// and the base64 of the HMAC with SHA-256 of id, timestamp and body, joined by
// dots.
//
// An answer of 2xx acknowledges a message. 410 says that nobody wants any more
// of them. After everything else the message is sent again, at first after a
// second, and at last every five minutes, or as Retry-After asks.
package webhook
