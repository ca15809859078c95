package accesslog

import (
	"bytes"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/store"
)

// maxAgents is the maximum number of user agents in the cache of [Bots].
const maxAgents = 8192

// Bots identifies the bots in the lines of a log. It is not safe for concurrent use.
type Bots struct {
	Table *bots.Table
	Local map[netip.Addr]bool // addresses of this machine, see [LocalAddresses]

	agents map[string]*bots.Bot
}

// Of returns the bot that a user agent names, or nil.
func (b *Bots) Of(agent []byte) *bots.Bot {
	if bot, ok := b.agents[string(agent)]; ok {
		return bot
	}
	if b.agents == nil || len(b.agents) >= maxAgents {
		b.agents = make(map[string]*bots.Bot)
	}
	bot := b.Table.Identify(string(agent))
	if len(agent) <= store.MaxEventText*4 {
		b.agents[string(agent)] = bot
	}
	return bot
}

// IsMillrace reports whether the user agent is that of millrace, on any machine.
func IsMillrace(agent []byte) bool { return bytes.Contains(agent, []byte("millrace/")) }

// IsOwn reports whether a request was sent by the operator's own millrace, for example to read the
// site. Such a request has millrace's user agent, and comes from this machine or from a private
// address.
func (b *Bots) IsOwn(l *Line) bool {
	if !IsMillrace(l.Agent) {
		return false
	}
	a := access.ParseAddress(string(l.Address))
	return a.IsLoopback() || a.IsPrivate() || b.Local[a]
}

// LocalAddresses returns the addresses of this machine.
func LocalAddresses() (map[netip.Addr]bool, error) {
	local := make(map[netip.Addr]bool)
	addresses, err := net.InterfaceAddrs()
	for _, a := range addresses {
		if p, perr := netip.ParsePrefix(a.String()); perr == nil {
			local[p.Addr().Unmap()] = true
		}
	}
	return local, err
}

// Event returns the event for a request by a bot, in the form that the gateway uses. A log has no
// content types, so a path without a file extension counts as a page. The size of the content is
// unknown, because the log has the size of the possibly compressed body.
func (b *Bots) Event(l *Line, bot *bots.Bot) store.Event {
	e := store.Event{
		Time: l.Time, Bot: bot.Token, Family: bot.Family, Protocol: "html", Endpoint: store.EndpointFetch,
		Path: access.Redact(string(l.Path())), Status: l.Status, Bytes: l.Bytes, Took: max(0, l.Duration), Cached: l.Status == http.StatusNotModified,
	}
	if e.Bot == "" {
		e.Bot = bot.Name
	}
	switch b.verify(bot, l.Address) {
	case bots.Verified:
		e.Identity = store.Verified
	case bots.Forged:
		e.Identity = store.Forged
	}
	name := path.Base(e.Path)
	switch method := string(l.Method); {
	case e.Path == "/robots.txt":
		e.Protocol, e.Endpoint = access.SiteProtocol, store.EndpointDiscovery
	case strings.HasPrefix(name, "sitemap") && strings.HasSuffix(name, ".xml"):
		e.Protocol, e.Endpoint = access.SiteProtocol, store.EndpointIndex
	case method != http.MethodGet && method != http.MethodHead, !proxy.MayBePage(e.Path), name == "feed", strings.HasPrefix(e.Path, "/wp-json/"):
		e.Endpoint = store.EndpointFile
	case e.Bytes > 0 && e.Status == http.StatusOK && method == http.MethodGet, e.Status == http.StatusNotModified:
		e.Results = 1
	}
	return e
}

// verify checks the address of a bot.
func (b *Bots) verify(bot *bots.Bot, address []byte) bots.Identity {
	if !b.Table.Located(bot) {
		return bots.Unknown
	}
	from, err := netip.ParseAddr(string(address))
	if err != nil {
		port, err := netip.ParseAddrPort(string(address))
		if err != nil {
			return bots.Unknown // a host name
		}
		from = port.Addr()
	}
	return b.Table.Verify(bot, from)
}

// SameHost reports whether a host of a line, which may have a port, is the given host. It ignores a
// prefix "www.".
func SameHost(line []byte, host string) bool {
	name := string(line)
	if i := strings.LastIndexByte(name, ':'); i >= 0 && !strings.HasSuffix(name, "]") {
		name = name[:i]
	}
	trim := func(s string) string { return strings.TrimPrefix(strings.ToLower(s), "www.") }
	return trim(name) == trim(host)
}
