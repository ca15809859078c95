package caddy

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/millrace/millrace"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("millrace", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		m := new(Handler)
		return m, m.UnmarshalCaddyfile(h.Dispenser)
	})
	// The directive runs after the handlers that check passwords, and within encode, so that
	// elements are added to pages before they are compressed.
	httpcaddyfile.RegisterDirectiveOrder("millrace", httpcaddyfile.After, "encode")
}

// UnmarshalCaddyfile parses the directive:
//
//	millrace [<matcher>] {
//		source   <folder>|site
//		base_url <url>
//		store    <file>
//		title    <text>
//		contact  <url|e-mail>
//		also     <protocol...>
//		exclude  <path...>
//		policy {
//			ai-input|ai-train|search yes|no
//			terms|payment|contact    <url>
//			attribution
//		}
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := make(map[string]bool)
	for d.NextBlock(0) {
		name := d.Val()
		if seen[name] {
			return d.Errf("%s: duplicate option", name)
		}
		seen[name] = true
		if err := h.option(d, name); err != nil {
			return err
		}
	}
	return nil
}

// option parses one option of the directive.
func (h *Handler) option(d *caddyfile.Dispenser, name string) error {
	var err error
	switch name {
	case "source":
		if err = one(d, &h.Source); err == nil {
			err = checkSource(h.Source)
		}
	case "base_url":
		if err = one(d, &h.BaseURL); err == nil {
			err = checkBase(h.BaseURL)
		}
	case "store":
		return one(d, &h.Store)
	case "title":
		return one(d, &h.Title)
	case "contact":
		return one(d, &h.Contact)
	case "also":
		if h.Also = d.RemainingArgs(); len(h.Also) == 0 {
			return d.ArgErr()
		}
		for _, p := range h.Also {
			if err := checkAlso(p); err != nil {
				return d.WrapErr(err)
			}
		}
	case "exclude":
		if h.Exclude = d.RemainingArgs(); len(h.Exclude) == 0 {
			return d.ArgErr()
		}
	case "policy":
		if d.NextArg() {
			return d.ArgErr()
		}
		h.Policy = new(Policy)
		for nesting := d.Nesting(); d.NextBlock(nesting); {
			if err := h.Policy.option(d); err != nil {
				return err
			}
		}
		err = h.Policy.policy().Validate()
	default:
		return d.Errf("unknown option %s of millrace; the options are source, base_url, store, title, contact, also, exclude and policy", name)
	}
	if err != nil {
		return d.WrapErr(err)
	}
	return nil
}

// option parses one option of a policy.
func (p *Policy) option(d *caddyfile.Dispenser) error {
	switch name := d.Val(); name {
	case string(millrace.AIInput), string(millrace.AITrain), string(millrace.Search):
		var answer string
		if err := one(d, &answer); err != nil {
			return err
		}
		if answer != "yes" && answer != "no" {
			return d.Errf("%s %s: write yes or no", name, answer)
		}
		if p.Purposes == nil {
			p.Purposes = make(map[millrace.Purpose]bool)
		}
		p.Purposes[millrace.Purpose(name)] = answer == "yes"
		return nil
	case "terms":
		return one(d, &p.Terms)
	case "payment":
		return one(d, &p.Payment)
	case "contact":
		return one(d, &p.Contact)
	case "attribution":
		p.Attribution = true
		if d.NextArg() {
			return d.ArgErr()
		}
		return nil
	default:
		return d.Errf("unknown option %s of policy; the options are ai-input, ai-train, search, terms, payment, contact and attribution", name)
	}
}

// one parses exactly one argument.
func one(d *caddyfile.Dispenser, to *string) error {
	if !d.AllArgs(to) || *to == "" {
		return d.ArgErr()
	}
	return nil
}
