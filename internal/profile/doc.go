// Package profile contains rules that belong to no protocol. [Proxy] returns the rules that a proxy
// between a server and its clients may break. [AgentReady] returns the rules by which scanners
// judge whether a site is ready for agents.
package profile
