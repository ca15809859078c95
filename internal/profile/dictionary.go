package profile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/dcz"
	"github.com/millrace/millrace/internal/kit"
)

// versioned is a document that is the dictionary for its next version (RFC 9842), with its
// responses.
type versioned struct {
	url     string
	offered *check.Response // response to a client that accepts dcz: the dictionary
	coded   *check.Response // response to a client that has the dictionary
	unknown *check.Response // response to a client that has an unknown dictionary
	plain   *check.Response // response to a client that has the dictionary but does not accept dcz
}

// maxAsked is the maximum number of documents whose responses are searched for Use-As-Dictionary.
const maxAsked = 3

// versions finds the first document that is a dictionary, and requests the responses of versioned.
// If there is no such document, it returns ErrNotApplicable.
func (s *way) versions(ctx context.Context) (*versioned, error) {
	for _, d := range s.documents[:min(len(s.documents), maxAsked)] {
		first, err := s.Do(ctx, http.MethodGet, d.url, http.Header{"Accept-Encoding": {dcz.Name}})
		if err != nil {
			return nil, err
		}
		if first.Header.Get(dcz.Use) == "" || first.Header.Get("Content-Encoding") != "" || first.CutErr != nil {
			continue
		}
		v := &versioned{url: d.url, offered: first}
		with := func(accept, id string) *check.Response {
			r, e := s.Do(ctx, http.MethodGet, d.url, http.Header{"Accept-Encoding": {accept}, dcz.Available: {id}})
			err = errors.Join(err, e)
			return r
		}
		held := dcz.Sum(first.Coded).Field()
		v.coded, v.plain = with("gzip, "+dcz.Name, held), with("gzip", held)
		v.unknown = with("gzip, "+dcz.Name, dcz.Sum(append(bytes.Clone(first.Coded), "another"...)).Field())
		return v, err
	}
	return nil, check.ErrNotApplicable
}

// dictionaryRules returns the rules for documents that are dictionaries for their next versions.
func dictionaryRules(rule func(section, word string, level check.Level, sentence, fix string, f check.SiteCheck[*way]) check.Rule) []check.Rule {
	const fields = "nginx: no proxy_hide_header Vary, and no proxy_set_header Accept-Encoding without Available-Dictionary. Caddy: no header -Vary. " +
		"Cloudflare: no transform rule that changes these fields."
	const noCache = "The cache must obey Vary, or store nothing. nginx: proxy_cache off;. Caddy: no cache module. Cloudflare: a cache rule that bypasses the cache for these documents."
	on := func(f func(v *versioned, fail func(r *check.Response, got, want string))) check.SiteCheck[*way] {
		return func(ctx context.Context, s *way, fail check.Fail) error {
			v, err := s.versions(ctx)
			if err != nil {
				return err
			}
			f(v, func(r *check.Response, got, want string) { fail(v.url, through(r, got), want) })
			return nil
		}
	}
	coding := func(r *check.Response) bool { return strings.Contains(r.Header.Get("Content-Encoding"), dcz.Name) }
	return []check.Rule{
		rule("rfc9842-2.1", "dictionary-match", check.Must, "Use-As-Dictionary has a match, which is a pattern for URLs of the same origin without regular expressions.", fields, on(func(v *versioned, fail func(r *check.Response, got, want string)) {
			value := v.offered.Header.Get(dcz.Use)
			if !validMatch(value) {
				fail(v.offered, dcz.Use+": "+value, `match="/path", a string`)
			}
		})),
		rule("rfc9842-6.1", "dictionary-known", check.Must, "A response is coded only against the dictionary that the request names, and only if the request accepts that coding.", noCache, on(func(v *versioned, fail func(r *check.Response, got, want string)) {
			if coding(v.unknown) {
				fail(v.unknown, "Content-Encoding: "+dcz.Name+" for an unknown dictionary", "another coding")
			}
			if coding(v.plain) {
				fail(v.plain, "Content-Encoding: "+dcz.Name+" for Accept-Encoding: gzip", "another coding")
			}
			if !coding(v.coded) || v.coded.CutErr != nil {
				return
			}
			r, err := dcz.NewReader(bytes.NewReader(v.coded.Coded), v.offered.Coded, dcz.Sum(v.offered.Coded))
			if err == nil {
				defer r.Close()
				_, err = io.Copy(io.Discard, r)
			}
			if err != nil {
				fail(v.coded, "a body that the dictionary does not decode: "+err.Error(), "a frame against that dictionary")
			}
		})),
		rule("rfc9842-6.2", "dictionary-vary", check.Must, "A response that is coded against a dictionary has Vary: Accept-Encoding, Available-Dictionary.", fields, func(ctx context.Context, s *way, fail check.Fail) error {
			v, err := s.versions(ctx)
			switch {
			case err != nil:
				return err
			case !coding(v.coded):
				return check.ErrNotApplicable
			case !kit.Varies(v.coded.Header, "Accept-Encoding") || !kit.Varies(v.coded.Header, dcz.Available):
				fail(v.url, through(v.coded, "Vary: "+v.coded.Field("Vary")), "Vary: Accept-Encoding, "+dcz.Available)
			}
			return nil
		}),
	}
}

// validMatch reports whether a value of Use-As-Dictionary has a valid match.
func validMatch(value string) bool {
	fields, err := httpsfv.UnmarshalDictionary([]string{value})
	if err != nil {
		return false
	}
	member, _ := fields.Get("match")
	item, ok := member.(httpsfv.Item)
	match, text := item.Value.(string)
	// A parenthesis without a backslash begins a regular expression.
	plain := strings.NewReplacer(`\\`, "", `\(`, "").Replace(match)
	return ok && text && match != "" && !strings.Contains(plain, "(")
}
