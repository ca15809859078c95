// Package dashboard serves the private pages of a site's owner. They show which bots read
// the site, what that costs and saves, and what is broken.
//
// The pages are complete HTML. A script draws the tables of figures as charts. The pages load
// nothing from other servers.
//
// A page is a handler in page_NAME.go and a template in templates/NAME.html. routes.go lists
// all of them. The data comes from [SiteOptions].
package dashboard
