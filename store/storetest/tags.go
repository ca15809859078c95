package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// tagger returns a tagger whose tags describe the page that it receives. Archives have no
// tags.
func tagger(proto string) millrace.Tagger {
	return millrace.Tagger{Protocol: proto, Tag: func(s millrace.Site, p *millrace.Page) (string, error) {
		switch {
		case p.Kind == millrace.Archive:
			return "", nil
		case strings.Contains(p.Title, "refused"):
			return "", errors.New("refused")
		}
		return strings.Join([]string{p.URL, p.Author, p.Modified.Format(time.RFC3339), s.EndpointBase, fmt.Sprint(len(p.Text()))}, "|"), nil
	}}
}

// slashes returns a tagger of protocol one, in which /a and /a/ share a name and /a is first.
func slashes() millrace.Tagger {
	t := tagger("one")
	t.Conflicts = func(pagePath string) (before, after []string) {
		if trimmed, ok := strings.CutSuffix(pagePath, "/"); ok {
			return []string{trimmed}, nil
		}
		return nil, []string{pagePath + "/"}
	}
	return t
}

func (f *fixture) tag(v millrace.View, proto, url string) millrace.Tag {
	f.Helper()
	tag, err := v.Tag(f.Context(), proto, url)
	if err != nil {
		f.Fatalf("tag: %v", err)
	}
	return tag
}

func (f *fixture) untagged(v millrace.View, proto, url string) {
	f.Helper()
	if tag, err := v.Tag(f.Context(), proto, url); !errors.Is(err, millrace.ErrNotFound) {
		f.Errorf("tag of %s in %s: %+v, %v", url, proto, tag, err)
	}
}

func (f *fixture) tags(v millrace.View, proto, after string) []string {
	f.Helper()
	list := []string{}
	for tag, err := range v.Tags(f.Context(), proto, after) {
		if err != nil {
			f.Fatalf("tags: %v", err)
		}
		list = append(list, fmt.Sprint(relative(tag.URL), " ", tag.N))
	}
	return list
}

func tagCases() []testCase {
	return []testCase{
		{"a tag is computed from the page that the view shows", func(t *testing.T, f *fixture) {
			f.taggers(tagger("one"), tagger("two"))
			p := article("/a", "12345")
			p.Author = "Ada ada@example.com"
			p.Known |= millrace.FieldAuthor
			f.apply(put(p))
			v := f.head()
			modified := f.page(v, "/a").Modified
			exp := millrace.Tag{
				URL: base + "a", N: 1, Modified: modified,
				Value: fmt.Sprint(base, "a|Ada|", modified.Format(time.RFC3339), "|", base, "|", len(p.Text())),
			}
			want(f, "by identity", f.tag(v, "one", "/a"), exp)
			want(f, "by URL", f.tag(v, "two", base+"a"), exp)
			f.untagged(v, "three", "/a")
			f.untagged(v, "one", "/b")
		}},
		{"a tag follows its page", func(t *testing.T, f *fixture) {
			f.taggers(tagger("one"))
			f.puts("/a")
			first := f.head()
			tag := f.tag(first, "one", "/a")
			f.apply(put(article("/a", "edited, and longer")))
			second := f.head()
			if f.tag(second, "one", "/a") == tag {
				t.Error("the tag of an edited page is the old one")
			}
			f.apply(gone("/a"))
			third := f.head()
			f.untagged(third, "one", "/a")
			f.puts("/a")
			want(f, "in the first view", f.tag(first, "one", "/a"), tag)
			want(f, "tags of the first view", f.tags(first, "one", ""), set("/a 1"))
			want(f, "tags of the second view", f.tags(second, "one", ""), set("/a 1"))
			want(f, "tags of the third view", f.tags(third, "one", ""), set())
			f.untagged(third, "one", "/a")
			want(f, "tags at the end", f.tags(f.head(), "one", ""), set("/a 1"))
		}},
		{"a tag that an edition has shown is gone, any other is not found", func(t *testing.T, f *fixture) {
			f.taggers(tagger("one"))
			publish := func(v millrace.View) {
				t.Helper()
				_, last, _ := f.pub.Published(t.Context())
				if _, err := f.pub.Publish(t.Context(), store.Lease{}, last.Number, v.Site().Seq, nil); err != nil {
					t.Fatal(err)
				}
			}
			archive := article("/archive", "t")
			archive.Kind = millrace.Archive
			archive.Known |= millrace.FieldKind
			early := f.head()
			f.puts("/shown", "/edited", "/retired")
			f.apply(put(archive))
			publish(f.head())
			if _, err := early.Tag(t.Context(), "one", "/shown"); !errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrGone) {
				t.Errorf("a tag that later editions had: %v", err)
			}
			f.pass(time.Hour)
			f.apply(put(article("/edited", "edited")), put(article("/unseen", "no edition has it")), put(article("/late", "late")))
			late := f.head()
			retired := archive.Clone()
			retired.URL = base + "retired"
			f.apply(gone("/shown"), gone("/edited"), gone("/unseen"), gone("/archive"), gone("/late"), put(retired))
			want := map[string]bool{"/shown": true, "/edited": true, "/retired": true, "/unseen": false, "/archive": false, "/late": false, "/other": false}
			all := func(when string) {
				t.Helper()
				for url, exp := range want {
					if _, err := f.head().Tag(t.Context(), "one", url); !errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrGone) != exp {
						t.Errorf("%s: tag of %s: %v", when, url, err)
					}
				}
			}
			all("at once")
			publish(late) // the edition includes tags that ended meanwhile
			want["/late"], want["/unseen"] = true, true
			all("after an edition whose build had begun earlier")
			publish(f.head())
			f.pass(2 * time.Hour)
			f.compact(time.Minute, 24*time.Hour)
			all("after Compact")
			f.puts("/shown")
			f.head()
			f.apply(gone("/shown"))
			all("after it was added and deleted again")
		}},
		{"a protocol may have no tag for a page", func(t *testing.T, f *fixture) {
			f.taggers(tagger("one"))
			archive, refused := article("/tags", "t"), article("/refused", "refused")
			archive.Kind = millrace.Archive
			archive.Known |= millrace.FieldKind
			f.apply(put(archive), put(refused), put(article("/a", "a")))
			f.untagged(f.head(), "one", "/tags")
			f.untagged(f.head(), "one", "/refused")
			article := archive.Clone()
			article.Kind = millrace.Article
			f.apply(put(article))
			with := f.head()
			f.apply(put(archive))
			f.untagged(f.head(), "one", "/tags")
			f.tag(with, "one", "/tags")
		}},
		{"tags are ordered by identity", func(t *testing.T, f *fixture) {
			f.taggers(tagger("one"))
			var batch []millrace.Change
			var exp []string
			for i := range 600 {
				batch = append(batch, put(article(fmt.Sprintf("/p%03d", 599-i), "text")))
				exp = append(exp, fmt.Sprintf("/p%03d 1", i))
			}
			f.apply(batch...)
			want(f, "all", f.tags(f.head(), "one", ""), exp)
			want(f, "after", f.tags(f.head(), "one", base+"p590"), exp[591:])
			want(f, "unknown protocol", f.tags(f.head(), "none", ""), set())
		}},
		{"conflicts are numbered by presence", func(t *testing.T, f *fixture) {
			f.taggers(slashes(), tagger("two"))
			f.apply(put(article("/a/", "late")))
			alone := f.head()
			want(f, "alone", f.tag(alone, "one", "/a/").N, 1)
			f.apply(put(article("/a", "early")))
			both := f.head()
			want(f, "second", f.tag(both, "one", "/a/").N, 2)
			want(f, "first", f.tag(both, "one", "/a").N, 1)
			want(f, "a protocol without conflicts", f.tag(both, "two", "/a/").N, 1)
			want(f, "value", f.tag(both, "one", "/a/").Value, f.tag(alone, "one", "/a/").Value)
			want(f, "the old view", f.tags(alone, "one", ""), set("/a/ 1"))
			f.apply(put(article("/a/", "edited")))
			want(f, "after an edit", f.tag(f.head(), "one", "/a/").N, 2)
			f.apply(gone("/a"))
			want(f, "alone again", f.tags(f.head(), "one", ""), set("/a/ 1"))
			want(f, "the view between", f.tags(both, "one", ""), set("/a 1", "/a/ 2"))
		}},
		{"conflicts are added and deleted between two refreshes", func(t *testing.T, f *fixture) {
			f.taggers(slashes())
			f.puts("/a", "/a/", "/b/", "/c", "/c/", "/d/")
			want(f, "at first", f.tags(f.head(), "one", ""), set("/a 1", "/a/ 2", "/b/ 1", "/c 1", "/c/ 2", "/d/ 1"))
			f.apply(gone("/a"), gone("/c"), put(article("/b", "new")), put(article("/d", "new")))
			f.apply(put(article("/c", "back")), gone("/d"), put(article("/b/", "edited")))
			want(f, "then", f.tags(f.head(), "one", ""), set("/a/ 1", "/b 1", "/b/ 2", "/c 1", "/c/ 2", "/d/ 1"))
			f.apply(gone("/b/"), gone("/c"), put(article("/e/", "new")))
			f.apply(put(article("/b/", "back")), put(article("/a", "back")), put(article("/e", "new")))
			want(f, "at last", f.tags(f.head(), "one", ""), set("/a 1", "/a/ 2", "/b 1", "/b/ 2", "/c/ 1", "/d/ 1", "/e 1", "/e/ 2"))
		}},
		{"a hidden page is no rival", func(t *testing.T, f *fixture) {
			f.taggers(slashes())
			secret := article("/a", "s")
			secret.Access.NoIndex = true
			f.apply(put(secret), put(article("/a/", "text")))
			want(f, "hidden", f.tags(f.head(), "one", ""), set("/a/ 1"))
			f.puts("/a")
			want(f, "shown", f.tags(f.head(), "one", ""), set("/a 1", "/a/ 2"))
			f.apply(put(secret))
			want(f, "hidden again", f.tags(f.head(), "one", ""), set("/a/ 1"))
		}},
		{"conflicts in one batch get the same numbers in any order", func(t *testing.T, f *fixture) {
			f.taggers(slashes())
			f.apply(put(article("/a", "x")), put(article("/a/", "y")), put(article("/b/", "y")), put(article("/b", "x")))
			want(f, "tags", f.tags(f.head(), "one", ""), set("/a 1", "/a/ 2", "/b 1", "/b/ 2"))
		}},
	}
}
