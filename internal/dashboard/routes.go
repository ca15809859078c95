package dashboard

import "net/http"

// routes is the whole surface, below the path where the dashboard is mounted:
//
//	GET  /static/NAME  style, scripts and the licence of the chart library, for everybody
//	GET  /login        the form; POST lets in
//	POST /logout       ends the session
//	POST /theme        light, dark, or as the system has it
//	GET  /             overview
//	GET  /traffic      requests by bot, protocol and day
//
// Each needs a session, but for the first two. A form is a POST with a token of
// its session.
func (d *Dashboard) routes() *http.ServeMux {
	m := http.NewServeMux()
	m.HandleFunc("GET /login", d.showLogin)
	m.HandleFunc("POST /login", d.login)
	m.HandleFunc("POST /logout", d.logout)
	m.HandleFunc("POST /theme", d.theme)

	d.show(m, "GET /{$}", "overview", d.overview)
	d.show(m, "GET /traffic", "traffic", d.traffic)

	d.show(m, "/", "error", d.nowhere)
	return m
}

// navigation is what the pages lead to, in groups.
func navigation() []navGroup {
	return []navGroup{
		{"", []navItem{{Page: "overview", To: "/", Label: "Overview"}, {Page: "traffic", To: "/traffic", Label: "Traffic"}}},
	}
}
