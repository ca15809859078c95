package wordpress

import "github.com/millrace/millrace/origin"

// Origin returns the description of this origin.
func Origin() origin.Origin {
	return origin.Origin{
		Name: "wordpress", Title: "WordPress's REST API", Types: true, Detect: Find,
		Open: func(root string, o *origin.Options) (*origin.Source, error) {
			s, err := New(o.Client, root, &Options{Rules: o.Rules, ExcludeTypes: o.ExcludeTypes, Logger: o.Logger})
			if err != nil {
				return nil, err
			}
			return &origin.Source{Source: s, SiteTitle: s.SiteTitle}, nil
		},
	}
}
