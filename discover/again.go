package discover

import (
	"context"
	"net/http"
)

// earlier returns the way with the given name from the previous probe, or nil if that probe did not
// find it. It also sets the report's Measured time back to that of the previous probe.
func (l *prober) earlier(name string) *Way {
	if l.Previous == nil || l.Previous.URL != l.site.URL {
		return nil
	}
	was := l.Previous.Way(name)
	if was == nil || was.Offer == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.Previous.Measured; t.Before(l.site.Measured) {
		l.site.Measured = t
	}
	return &Way{Protocol: name, Label: was.Label, Offer: was.Offer, Allowed: true, SendsChanges: was.SendsChanges}
}

// confirm returns the way of a protocol from the previous probe if the document of the way still
// exists. It returns nil if the protocol must be probed.
func (l *prober) confirm(ctx context.Context, name string) *Way {
	was := l.earlier(name)
	if was == nil {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, was.Offer.Entry, nil)
	if err != nil {
		return nil
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return nil
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Request.URL.String() != was.Offer.Entry {
		return nil
	}
	return was
}
