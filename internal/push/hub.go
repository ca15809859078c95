package push

import (
	"context"
	"net/url"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// CheckHub returns the canonical URL of a hub. If raw is invalid, it returns
// [millrace.ErrInvalid].
func CheckHub(raw string) (string, error) { return checkEndpoint("hub", raw) }

// hub is a WebSub hub that receives pings.
type hub struct {
	pusher *Pusher
	url    string
}

// flush pings the hub for every topic, if an edition was published since the last ping.
func (h *hub) flush(ctx context.Context) (sent bool, err error) {
	p, key := h.pusher, "push to hub "+h.url
	v, err := p.Site.Head(ctx)
	if err != nil {
		return false, err
	}
	stored, err := p.State.Value(ctx, p.Name, key)
	if err != nil {
		return false, err
	}
	site := v.Site()
	now := []byte(site.At(site.Seq))
	if last, err := site.SeqOf(millrace.Cursor(stored)); err == nil && last >= site.Seq {
		return false, nil // another process may already have announced a newer edition
	}
	topics := p.Topics()
	for _, topic := range topics {
		form := url.Values{"hub.mode": {"publish"}, "hub.url": {topic}}
		if err := post(ctx, p.Client, h.url, formType, []byte(form.Encode())); err != nil {
			return true, err
		}
	}
	p.Logger.DebugContext(ctx, "hub notified", "hub", fetch.HostOf(h.url), "topics", len(topics), "seq", site.Seq)
	return true, p.State.Swap(context.WithoutCancel(ctx), p.Name, key, stored, now)
}
