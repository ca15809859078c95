package crawl

import "github.com/millrace/millrace/origin"

// Origin returns the description of this origin.
func Origin() origin.Origin {
	return origin.Origin{
		Name: "crawl", Title: "a crawl", Progress: true,
		Open: func(root string, o *origin.Options) (*origin.Source, error) {
			c, err := New(o.Client, root, &Options{
				KnownRefs: o.KnownRefs, Original: o.Original, Rules: o.Rules, Progress: o.Progress, Logger: o.Logger,
				MaxPages: o.MaxPages, MaxDepth: o.MaxDepth, MaxTime: o.MaxTime, IgnoreRobots: o.IgnoreRobots, RejectUniform: o.RejectUniform,
			})
			if err != nil {
				return nil, err
			}
			return &origin.Source{Source: c, Next: c.Next, Complete: c.Complete, SiteTitle: c.SiteTitle}, nil
		},
	}
}
