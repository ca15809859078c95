// Package webhook posts messages to a server, signed according to Standard Webhooks
// (https://www.standardwebhooks.com), until they are acknowledged.
//
// A request has three header fields. webhook-id is the same for every attempt to send a message.
// webhook-timestamp is the time of this request, in seconds since 1970. webhook-signature is, for
// each secret, "v1," and the base64 of the HMAC with SHA-256 of id, timestamp and body, joined by
// dots.
//
// A 2xx response acknowledges a message. 410 ends the delivery of all messages. After any other
// response, the message is sent again. The delay grows from one second to five minutes, unless
// Retry-After sets another one.
package webhook
