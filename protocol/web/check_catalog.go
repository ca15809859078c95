package web

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

const (
	linksetType    = "application/linkset+json"
	catalogProfile = "https://www.rfc-editor.org/info/rfc9727"
)

// seenCatalog is the site's API catalog.
type seenCatalog struct {
	resp *check.Response
	sets []map[string]json.RawMessage // nil if the document could not be parsed
}

func seeCatalog(resp *check.Response) *seenCatalog {
	c := &seenCatalog{resp: resp}
	var doc struct {
		Linkset []map[string]json.RawMessage `json:"linkset"`
	}
	if json.Unmarshal(resp.Body, &doc) == nil {
		c.sets = doc.Linkset
	}
	return c
}

func checkCatalogType(c *seenCatalog, fail check.Fail) {
	kit.MediaType(c.resp.URL, c.resp, linksetType, fail)
}

func checkCatalogLinks(c *seenCatalog, fail check.Fail) {
	if c.sets == nil {
		fail(c.resp.URL, "no linkset that is an array of objects", `{"linkset":[{"anchor":…}]}`)
		return
	}
	for i, set := range c.sets {
		for rel, raw := range set {
			if rel == "anchor" {
				if _, ok := check.JSONText(set[rel]); !ok {
					fail(c.resp.URL, fmt.Sprintf("/linkset/%d/anchor: %s", i, kit.ShortJSON(raw)), "a string")
				}
				continue
			}
			var targets []struct {
				Href *string `json:"href"`
			}
			if json.Unmarshal(raw, &targets) != nil || len(targets) == 0 {
				fail(c.resp.URL, fmt.Sprintf("/linkset/%d/%s: %s", i, kit.Short(rel), kit.ShortJSON(raw)), "an array of objects")
				continue
			}
			for _, t := range targets {
				if t.Href == nil {
					fail(c.resp.URL, fmt.Sprintf("/linkset/%d/%s: no href", i, kit.Short(rel)), "href")
				}
			}
		}
	}
}

func checkCatalogProfile(c *seenCatalog, fail check.Fail) {
	_, params, _ := mime.ParseMediaType(c.resp.Header.Get("Content-Type"))
	if params["profile"] != catalogProfile {
		fail(c.resp.URL, "Content-Type: "+c.resp.Header.Get("Content-Type"), `profile="`+catalogProfile+`"`)
	}
}

func checkCatalogHead(ctx context.Context, s *siteContext, fail check.Fail) error {
	if s.catalog == nil {
		return check.ErrNotApplicable
	}
	resp, err := s.Target.Do(ctx, http.MethodHead, s.At(pathCatalog), nil)
	if err != nil {
		return err
	}
	for _, l := range kit.FieldLinks(resp) {
		if l.Is("api-catalog", "") || l.Is("item", "") {
			return nil
		}
	}
	fail(resp.URL, "HEAD: "+resp.StatusText()+" without such a link", `Link with rel="api-catalog" or rel="item"`)
	return nil
}
