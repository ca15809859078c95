package dashboard

import "net/http"

// routes returns the routes below Path:
//
//	GET  /static/NAME  style, scripts and the license of the chart library, public
//	GET  /login        the form; POST logs in
//	POST /logout       ends the session
//	POST /theme        light, dark, or the system's
//	GET  /             overview
//	GET  /traffic      requests by bot, protocol and day
//	GET  /pages        list of the pages, with search and traffic
//	GET  /page         one page in each protocol, its HTML, and a trial of rules
//	POST /page/rules   saves rules
//	GET  /changes      the change log of the site
//	GET  /searches     queries, and those without results
//	GET  /protocols    published protocols, and results of checks; POST runs one
//	GET  /policy       the policy, access settings, keys
//	POST /policy/save  saves the policy; POST /policy/bots saves the rules for bots
//	POST /policy/keys  creates a key; POST /policy/revoke revokes one
//	GET  /errors       skipped pages, failed requests
//	GET  /unusual      unusual traffic
//	GET  /fleet        the sites that watch --all pulls into the store
//
// All but the first two need a session. A form is a POST with the token of its session.
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
	d.show(m, "POST /policy/save", "policy", d.savePolicy)
	d.show(m, "POST /policy/bots", "policy", d.saveBots)
	d.show(m, "POST /policy/keys", "policy", d.addKey)
	d.show(m, "POST /policy/revoke", "policy", d.revokeKey)
	d.show(m, "GET /errors", "errors", d.errors)
	d.show(m, "GET /unusual", "unusual", d.unusual)
	if d.site.Fleet != nil {
		d.show(m, "GET /fleet", "fleet", d.fleet)
	}

	d.show(m, "/", "error", d.notFound)
	return m
}

// navigation returns the entries of the navigation, in groups.
func (d *Dashboard) navigation() []navGroup {
	groups := []navGroup{
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
	if d.site.Fleet != nil {
		groups = append(groups, navGroup{"Store", []navItem{{Page: "fleet", To: "/fleet", Label: "Mirrored sites"}}})
	}
	return groups
}
