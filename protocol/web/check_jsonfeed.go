package web

import (
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

// seenJSONFeed is the site's JSON Feed.
type seenJSONFeed struct {
	resp   *check.Response
	fields map[string]json.RawMessage // nil if the document is not an object
	items  []map[string]json.RawMessage
}

func seeJSONFeed(resp *check.Response) *seenJSONFeed {
	j := &seenJSONFeed{resp: resp}
	j.fields = kit.Object(resp.Body)
	for _, raw := range kit.Array(j.fields["items"]) {
		if it := kit.Object(raw); it != nil {
			j.items = append(j.items, it)
		}
	}
	return j
}

func checkJSONFeedObject(j *seenJSONFeed, fail check.Fail) {
	if j.fields == nil {
		fail(j.resp.URL, "not a JSON object", "a JSON object")
	}
}

func checkJSONFeedVersion(j *seenJSONFeed, fail check.Fail) {
	if j.fields == nil {
		return
	}
	switch v := kit.Text(j.fields["version"]); v {
	case "https://jsonfeed.org/version/1", "https://jsonfeed.org/version/1.1":
	default:
		fail(j.resp.URL, "version: "+kit.ShortJSON(j.fields["version"]), "https://jsonfeed.org/version/1.1")
	}
}

func checkJSONFeedTitle(j *seenJSONFeed, fail check.Fail) {
	if j.fields == nil {
		return
	}
	if _, ok := check.JSONText(j.fields["title"]); !ok {
		fail(j.resp.URL, "title: "+kit.ShortJSON(j.fields["title"]), "a string")
	}
}

func checkJSONFeedItems(j *seenJSONFeed, fail check.Fail) {
	if j.fields == nil {
		return
	}
	items := kit.Array(j.fields["items"])
	if items == nil {
		fail(j.resp.URL, "items: "+kit.ShortJSON(j.fields["items"]), "an array")
	} else if len(items) != len(j.items) {
		fail(j.resp.URL, fmt.Sprintf("%d items that are not objects", len(items)-len(j.items)), "objects")
	}
}

func checkJSONFeedURL(j *seenJSONFeed, fail check.Fail) {
	if j.fields == nil {
		return
	}
	at, ok := check.JSONText(j.fields["feed_url"])
	got, err := canon.URL(at)
	if want, bad := canon.URL(j.resp.URL); !ok || err != nil || bad == nil && got != want {
		fail(j.resp.URL, "feed_url: "+kit.ShortJSON(j.fields["feed_url"]), j.resp.URL)
	}
}

func checkJSONItemID(j *seenJSONFeed, fail check.Fail) {
	seen := map[string]bool{}
	for i, it := range j.items {
		id, ok := check.JSONText(it["id"])
		switch {
		case !ok || id == "":
			fail(j.resp.URL, fmt.Sprintf("/items/%d/id: %s", i, kit.ShortJSON(it["id"])), "a string")
		case seen[id]:
			fail(j.resp.URL, fmt.Sprintf("/items/%d/id: duplicate %s", i, kit.Short(id)), "a unique id")
		}
		seen[id] = true
	}
}

func checkJSONItemContent(j *seenJSONFeed, fail check.Fail) {
	for i, it := range j.items {
		_, html := check.JSONText(it["content_html"])
		if _, plain := check.JSONText(it["content_text"]); !html && !plain {
			fail(j.resp.URL, fmt.Sprintf("/items/%d: neither content_html nor content_text", i), "one of them")
		}
	}
}

func checkJSONItemDate(j *seenJSONFeed, fail check.Fail) {
	for i, it := range j.items {
		for _, name := range []string{"date_published", "date_modified"} {
			if it[name] == nil {
				continue
			}
			if s, ok := check.JSONText(it[name]); !ok || !isDate(s) {
				fail(j.resp.URL, fmt.Sprintf("/items/%d/%s: %s", i, name, kit.ShortJSON(it[name])), "a time such as 2026-01-02T03:04:05Z")
			}
		}
	}
}

func checkJSONFeedType(j *seenJSONFeed, fail check.Fail) {
	kit.MediaType(j.resp.URL, j.resp, jsonFeedType, fail)
}
