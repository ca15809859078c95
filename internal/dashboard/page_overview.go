package dashboard

import "net/http"

type overviewPage struct{}

func (d *Dashboard) overview(*http.Request) (*reply, error) {
	return &reply{Data: &overviewPage{}}, nil
}
func (d *Dashboard) traffic(*http.Request) (*reply, error) { return &reply{Data: &overviewPage{}}, nil }
