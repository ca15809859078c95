package folder

import "github.com/millrace/millrace/origin"

// Origin returns the description of this origin.
func Origin() origin.Origin {
	return origin.Origin{
		Name: "folder", Title: "a folder of HTML", Folder: true, ByFile: true,
		Open: func(dir string, o *origin.Options) (*origin.Source, error) {
			f, err := New(dir, &Options{Base: o.Base, Rules: o.Rules, Logger: o.Logger})
			if err != nil {
				return nil, err
			}
			return &origin.Source{Source: f, Files: f, Watch: f.Watch, SiteTitle: f.SiteTitle, Close: f.Close}, nil
		},
	}
}
