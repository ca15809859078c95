// Package push sends and receives notifications about changes of a site. It implements both
// sides of WebSub (W3C Recommendation of 23 January 2018), and the client of IndexNow
// (https://www.indexnow.org).
//
// # Sending
//
// A [Pusher] follows the editions of a site. After each edition it pings the hubs once for
// each topic; topics are the documents that list changes. WebSub does not define the format of the
// ping. The Pusher uses that of PubSubHubbub, which all hubs accept: hub.mode=publish,
// hub.url=TOPIC. It also submits the URLs of changed pages to IndexNow, up to 10,000 at once. The
// store keeps the position of each receiver. If the receiver is down, or no process runs, the
// Pusher sends the changes later. After a notification, it waits, and sends the changes of that
// time together.
//
// # Receiving
//
// A [Subscriber] finds the hub of a site ([Find]), requests a subscription, confirms it to the
// hub, and renews it before it expires. It verifies a notification's signature with the secret
// of the subscription. A notification is only a hint, after which the reader fetches the site.
package push
