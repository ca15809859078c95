package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/protocol/openfeeder"
	"github.com/millrace/millrace/store"
)

// publishFlags holds the flags of every command that publishes.
type publishFlags struct {
	Exclude         []string `placeholder:"PATH" help:"Paths to hide, with everything below them. Account, cart, login and administration pages are hidden by default."`
	ExcludeDefaults bool     `negatable:"" default:"true" help:"Hide account, cart, login and administration pages (default: yes)." hidden:""`
	ExcludeTypes    []string `placeholder:"TYPE" help:"Types of WordPress's REST API to omit, such as page or product." hidden:""`
	HideKinds       []string `placeholder:"KIND" help:"Kinds of pages to hide, such as forum." hidden:""`
	Authors         string   `enum:"name,hidden" default:"name" help:"How authors appear: ${enum}."`
	Also            []string `type:"names" placeholder:"PROTOCOL,..." help:"Also publish in these protocols (default: none): tct-03, whose specification is not final; with build, also openfeeder, tct-01 and tct-00." hidden:""`
	SiteTitle       string   `placeholder:"TEXT" help:"Title of the site in lists and feeds (default: the site's own title)." hidden:""`
	SiteContact     string   `placeholder:"ADDRESS" help:"Published URL or e-mail address for operators of bots (default: none)."`
	RobotsSignal    bool     `name:"robots-content-signal" negatable:"" default:"true" help:"Write Content-Signal lines to robots.txt, if there is a policy (default: yes)." hidden:""`
	RobotsUsage     bool     `name:"robots-content-usage" help:"Write Content-Usage lines to robots.txt, if there is a policy. Some validators report them as errors." hidden:""`
	RobotsLicense   bool     `name:"robots-license" help:"Write a License line to robots.txt, if there is a license. Some validators report it as an error." hidden:""`
	Rehost          bool     `help:"Publish the pages of a mirror under the base URL instead of their original URLs, so that every protocol can publish them."`

	SCP scpFlags      `embed:""`
	ARC arcFlags      `embed:""`
	Web webPublishing `embed:""`
}

// hideableKinds lists the kinds of pages that --hide-kinds accepts.
var hideableKinds = []millrace.PageKind{
	millrace.Article, millrace.Documentation, millrace.Service, millrace.Forum, millrace.Product,
	millrace.Listing, millrace.Collection, millrace.Archive,
}

// validate rejects invalid values. Otherwise, a typo in a flag that hides pages would publish
// them.
func (c *publishFlags) validate() error {
	for _, name := range c.Also {
		if names := onRequest(); !slices.Contains(names, name) {
			return usageError(fmt.Sprintf("--also %s: must be one of %s", name, strings.Join(names, ", ")))
		}
	}
	for _, path := range c.Exclude {
		if !strings.HasPrefix(path, "/") {
			return usageError(fmt.Sprintf("--exclude: %q is not a path: a path starts with /, such as /drafts", path))
		}
	}
	for _, kind := range c.HideKinds {
		if !slices.Contains(hideableKinds, millrace.PageKind(kind)) {
			return usageError(fmt.Sprintf("--hide-kinds: unknown kind %q; use one of %q", kind, hideableKinds))
		}
	}
	return errors.Join(c.SCP.validate(), c.ARC.validate(), c.Web.validate())
}

// onRequest returns the protocols that --also accepts. Those with Repeats have an effect only in
// build.
func onRequest() (names []string) {
	for _, p := range all.Protocols() {
		if p.OnRequest || p.Repeats {
			names = append(names, p.Name)
		}
	}
	return names
}

func (c *publishFlags) visibility() millrace.Visibility {
	v := millrace.Visibility{Exclude: append([]string{}, c.Exclude...)} // nil would mean the defaults
	if c.ExcludeDefaults {
		v.Exclude = slices.Concat(millrace.DefaultExclude, c.Exclude)
	}
	for _, k := range c.HideKinds {
		v.Kinds = append(v.Kinds, millrace.PageKind(k))
	}
	if c.Authors == "hidden" {
		v.Authors = millrace.AuthorHidden
	}
	return v
}

// configure returns the configuration of a publication. It rejects flags that do not fit the
// site.
func (c *publishFlags) configure(base, endpointBase string) (store.Config, error) {
	return store.Config{Base: base, EndpointBase: endpointBase, Visibility: c.visibility()}, c.ARC.on(base)
}

// publisher returns the options of every protocol. static and compact are options of
// [protocol.PublisherOptions]. embeddings reports whether searches use the vectors of a model.
func (c *publishFlags) publisher(says *millrace.Policy, static, compact, embeddings bool) protocol.PublisherOptions {
	return protocol.PublisherOptions{
		Also: c.Also, Static: static, Compact: compact, Contact: c.SiteContact, Policy: says,
		Own: []any{c.SCP.options(), c.ARC.options(), c.Web.options(), &openfeeder.PublisherOptions{Embeddings: embeddings}},
	}
}

// robotsLines returns the lines of the policy for robots.txt.
func (c *publishFlags) robotsLines() policy.RobotsLines {
	return policy.RobotsLines{NoSignal: !c.RobotsSignal, Usage: c.RobotsUsage, License: c.RobotsLicense}
}
