// Package push sends and receives notifications about changes of a site. It implements both
// sides of WebSub (W3C Recommendation of 23 January 2018), and the client of IndexNow
// (https://www.indexnow.org).
//
// # Sending
//
// A [Pusher] follows the editions of a site. After each edition it pings the hubs once for
// each topic; topics are the documents that list changes. WebSub leaves the form of the ping
// open. The Pusher uses that of its predecessor, which all hubs accept: hub.mode=publish,
// hub.url=TOPIC. It also submits the URLs of changed pages to IndexNow, up to 10,000 at
// once. The store keeps the position of each receiver. So changes are sent later if the
// receiver is down, or no process runs. Changes during a pause are sent together with later
// ones.
//
// # Receiving
//
// A [Subscriber] finds the hub of a site ([Find]), requests a subscription, confirms it to
// the hub, and renews it before it expires. It checks a notification's signature with the
// secret of the subscription. A notification is only a hint: the reader then fetches the
// site.
package push
