// Package push tells others at once when a site has changed, and hears it from
// others: WebSub (W3C Recommendation of 23 January 2018) both ways, and
// IndexNow (https://www.indexnow.org) one way.
//
// # Telling
//
// A [Pusher] follows what is published. After each edition it pings the hubs,
// once for each topic, which are the documents that tell what has changed; WebSub
// leaves to hub and publisher how, and all hubs take the form of its
// predecessor: hub.mode=publish, hub.url=TOPIC. It submits the addresses of the
// pages that have changed to IndexNow, up to 10,000 at once. The store keeps
// the position of each receiver, so that changes while it is down, or while no
// process runs, are sent later. Changes during a pause are sent together with
// those after it.
//
// # Hearing
//
// A [Subscriber] finds the hub of a site ([Find]), asks for a subscription,
// answers when the hub asks whether it was meant, and renews it before its lease
// ends. What a hub sends is checked against the secret of the subscription, and
// is a hint alone: what there is to see, a look at the site shows.
package push
