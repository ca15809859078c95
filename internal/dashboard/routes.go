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
//	GET  /pages        list of the pages, searched, with the traffic of each
//	GET  /page         one page as each protocol has it, its HTML, and rules that are tried on it
//	POST /page/rules   saves rules
//	GET  /changes      the log of the site
//	GET  /searches     queries, and those without results
//	GET  /protocols    what is published, and the checker's verdict; POST asks for one
//	GET  /policy       the policy, who is let in, the keys
//	POST /policy/keys  makes a key; POST /policy/revoke ends one
//	GET  /errors       pages that were skipped, requests that failed
//	GET  /unusual      unusual ways to read the site
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

	d.show(m, "GET /pages", "pages", d.listed)
	d.show(m, "GET /page", "page", d.page)
	d.show(m, "POST /page/rules", "page", d.saveRules)
	d.show(m, "GET /changes", "changes", d.changes)
	d.show(m, "GET /searches", "searches", d.searches)
	d.show(m, "GET /protocols", "protocols", d.protocols)
	d.show(m, "POST /protocols", "protocols", d.check)
	d.show(m, "GET /policy", "policy", d.policy)
	d.show(m, "POST /policy/keys", "policy", d.addKey)
	d.show(m, "POST /policy/revoke", "policy", d.revokeKey)
	d.show(m, "GET /errors", "errors", d.errors)
	d.show(m, "GET /unusual", "unusual", d.unusual)

	d.show(m, "/", "error", d.nowhere)
	return m
}

// navigation is what the pages lead to, in groups.
func navigation() []navGroup {
	return []navGroup{
		{"", []navItem{{Page: "overview", To: "/", Label: "Overview"}, {Page: "traffic", To: "/traffic", Label: "Traffic"}}},
		{"Content", []navItem{
			{Page: "pages", To: "/pages", Label: "Pages"},
			{Page: "changes", To: "/changes", Label: "Changes"},
			{Page: "searches", To: "/searches", Label: "Searches"},
		}},
		{"Service", []navItem{
			{Page: "protocols", To: "/protocols", Label: "Protocols"},
			{Page: "policy", To: "/policy", Label: "Policy and keys"},
			{Page: "errors", To: "/errors", Label: "Errors"},
			{Page: "unusual", To: "/unusual", Label: "Unusual"},
		}},
	}
}
