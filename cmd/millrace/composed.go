package main

import (
	"github.com/millrace/millrace/internal/gateway"
)

// speak gives the gateway what it says of the use of the content, and what it
// leaves out of the site's own sitemap.
func (c *publishing) speak(o *gateway.Options) { o.Policy, o.Visibility = c.policy, c.visibility() }

// composedRoom is the room whose rules speak of what the gateway composes.
const composedRoom = "web"
