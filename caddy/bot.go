package caddy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/webauth"
)

func init() { caddy.RegisterModule(new(MatchBot)) }

// MatchBot matches the requests of bots that identify themselves.
type MatchBot struct {
	// Names are tokens of user agents such as "GPTBot", operators such as "openai", or the
	// purposes training, search and user. If empty, every bot matches.
	Names []string `json:"names,omitempty"`
	// Verified matches only bots that prove their identity by their address or by a signature.
	Verified bool `json:"verified,omitempty"`
	// Unverified matches only bots that do not prove their identity.
	Unverified bool `json:"unverified,omitempty"`
	// Ranges maps names of bots to files with the bots' addresses, in the format in which operators
	// publish them.
	Ranges map[string]string `json:"ranges,omitempty"`
	// Signatures verifies Web Bot Auth signatures. Keys are fetched from public addresses.
	Signatures bool `json:"signatures,omitempty"`

	table *bots.Table
	guard *access.Guard
}

// signers verifies the signatures of requests. It accepts a signature for the host that the
// request names.
type signers struct{ *webauth.Verifier }

// Verify implements [access.Agents].
func (s signers) Verify(ctx context.Context, r *http.Request) (string, error) {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return s.At(nil, scheme+r.Host).Verify(ctx, r)
}

// CaddyModule implements [caddy.Module].
func (*MatchBot) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.matchers.millrace_bot", New: func() caddy.Module { return new(MatchBot) }}
}

// UnmarshalCaddyfile parses the matcher:
//
//	millrace_bot [<name...>] [verified|unverified] {
//		ranges <name> <file>
//		signatures
//	}
func (m *MatchBot) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	for d.Next() {
		for _, arg := range d.RemainingArgs() {
			switch arg {
			case "verified":
				m.Verified = true
			case "unverified":
				m.Unverified = true
			default:
				m.Names = append(m.Names, arg)
			}
		}
		for d.NextBlock(0) {
			switch d.Val() {
			case "ranges":
				var name, file string
				if !d.AllArgs(&name, &file) {
					return d.ArgErr()
				}
				if m.Ranges == nil {
					m.Ranges = make(map[string]string)
				}
				m.Ranges[name] = file
			case "signatures":
				m.Signatures = true
			default:
				return d.Errf("unknown option %s of millrace_bot; the options are ranges and signatures", d.Val())
			}
		}
	}
	if err := m.build(slog.New(slog.DiscardHandler)); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

// Provision implements [caddy.Provisioner].
func (m *MatchBot) Provision(caddy.Context) error { return m.build(slog.New(caddyLog{})) }

// build validates the options, reads the address files, and prepares the matcher.
func (m *MatchBot) build(log *slog.Logger) error {
	if m.Verified && m.Unverified {
		return fmt.Errorf("millrace_bot: verified and unverified cannot be combined")
	}
	o := &bots.Options{Logger: log}
	for name, file := range m.Ranges {
		o.Ranges = append(o.Ranges, bots.RangeFile{Name: name, File: file})
	}
	var err error
	if m.table, err = bots.New(o); err != nil {
		return fmt.Errorf("millrace_bot: %w", err)
	}
	for _, name := range m.Names {
		if m.table.Named(name) == nil {
			return fmt.Errorf("millrace_bot: %s is not a known bot, operator or purpose", name)
		}
	}
	ao := &access.Options{Bots: m.table, Logger: log}
	if m.Signatures {
		client := fetch.New(webauth.ClientOptions(&fetch.Options{Logger: log})).HTTP()
		ao.Agents = signers{webauth.NewVerifier(&webauth.VerifierOptions{Client: client})}
	}
	m.guard, err = access.New(ao)
	return err
}

// MatchWithError implements [caddyhttp.RequestMatcherWithError].
func (m *MatchBot) MatchWithError(r *http.Request) (bool, error) {
	agents := r.Header["User-Agent"]
	if len(agents) == 0 && !m.Signatures {
		return false, nil
	}
	id := m.identify(r)
	if id.Bot == nil || len(m.Names) > 0 && !slices.ContainsFunc(m.Names, func(name string) bool {
		return slices.Contains(m.table.Named(name), id.Bot)
	}) {
		return false, nil
	}
	verified := id.Identification == bots.Verified
	return (verified || !m.Verified) && !(verified && m.Unverified), nil
}

// identify returns the identity of the client that sent a request.
func (m *MatchBot) identify(r *http.Request) access.Identity {
	from := *r
	if ip, ok := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string); ok && ip != "" {
		from.RemoteAddr = net.JoinHostPort(ip, "0")
	}
	q := m.guard.Request(&from)
	return q.Verify()
}

// Match implements [caddyhttp.RequestMatcher].
func (m *MatchBot) Match(r *http.Request) bool {
	ok, err := m.MatchWithError(r)
	return ok && err == nil
}

// Interface guards.
var (
	_ caddyfile.Unmarshaler             = (*MatchBot)(nil)
	_ caddy.Provisioner                 = (*MatchBot)(nil)
	_ caddyhttp.RequestMatcherWithError = (*MatchBot)(nil)
)
