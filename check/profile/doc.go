// Package profile contains rules that belong to no protocol: those that a proxy between the
// server and its clients breaks ([Proxy]), and those by which scanners judge whether a site is
// ready for agents ([AgentReady]).
package profile
