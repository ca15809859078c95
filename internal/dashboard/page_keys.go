package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// keyRow is one key in the list.
type keyRow struct {
	store.Key
	State string
	Kind  string // kind of badge
}

// madeKey is a new key, shown once.
type madeKey struct {
	Name, Key string
}

// keyForm is the input of a form that failed.
type keyForm struct {
	Name, Expires string
	Update        bool
}

// listKeys adds the keys, valid ones first.
func (d *Dashboard) listKeys(ctx context.Context, p *policyPage) error {
	if d.site.Keys == nil {
		return nil
	}
	keys, err := d.site.Keys.List(ctx)
	if err != nil {
		return err
	}
	now := d.now()
	for _, k := range keys {
		row := keyRow{Key: k, State: "valid", Kind: "good"}
		switch {
		case !k.Revoked.IsZero():
			row.State, row.Kind = "revoked", ""
		case !k.ValidAt(now):
			row.State, row.Kind = "expired", ""
		}
		p.Keys = append(p.Keys, row)
	}
	slices.SortStableFunc(p.Keys, func(a, b keyRow) int { return cmp.Compare(b.Kind, a.Kind) })
	return nil
}

// addKey creates a key and shows it once.
func (d *Dashboard) addKey(r *http.Request) (*reply, error) {
	if d.site.Keys == nil {
		return nil, millrace.ErrNotFound
	}
	f := keyForm{Name: strings.TrimSpace(r.PostForm.Get("name")), Expires: r.PostForm.Get("expires"), Update: r.PostForm.Get("update") != ""}
	k := store.Key{Name: f.Name}
	if r.PostForm.Get("read") != "" {
		k.Scopes = append(k.Scopes, millrace.ScopeRead)
	}
	if f.Update {
		k.Scopes = append(k.Scopes, millrace.ScopeUpdate)
	}
	key, hash := store.NewKey()
	k.Hash = hash
	err := k.Validate()
	if err == nil && f.Expires != "" {
		if k.Expires, err = time.Parse(time.DateOnly, f.Expires); err != nil {
			err = fmt.Errorf("%w: write the expiry as a day such as 2027-01-31", millrace.ErrInvalid)
		} else if !k.Expires.After(d.now()) {
			err = fmt.Errorf("%w: the expiry is in the past", millrace.ErrInvalid)
		}
	}
	if err == nil {
		err = d.site.Keys.Add(r.Context(), k)
	}
	if err != nil && !errors.Is(err, millrace.ErrInvalid) && !errors.Is(err, millrace.ErrConflict) {
		return nil, err
	}
	p, perr := d.policyPage(r.Context())
	if perr != nil {
		return nil, perr
	}
	if err != nil {
		p.Form = f
		return &reply{Data: p, Status: millrace.Status(err), Message: wrong("Key not created: " + err.Error())}, nil
	}
	d.log.Info("key created", "key", k.Name, "scopes", k.Scopes)
	p.Made = &madeKey{k.Name, key}
	return &reply{Data: p, Message: done("Key created. It is shown only once.")}, nil
}

// revokeKey revokes a key.
func (d *Dashboard) revokeKey(r *http.Request) (*reply, error) {
	if d.site.Keys == nil {
		return nil, millrace.ErrNotFound
	}
	name := r.PostForm.Get("name")
	err := d.site.Keys.Revoke(r.Context(), name)
	switch {
	case errors.Is(err, millrace.ErrNotFound):
		return &reply{To: "/policy", Message: wrong("No valid key has that name.")}, nil
	case err != nil:
		return nil, err
	}
	d.log.Info("key revoked", "key", name)
	return &reply{To: "/policy", Message: done("The key of " + printable(name) + " is revoked. It stops working at once.")}, nil
}
