// Package dashboard is the pages on which the owner of a site sees, behind a
// login, which machines read it, what that costs and saves, and what is broken.
// They are made here, as HTML that says everything by itself; a script draws
// the tables of figures as charts, where there is one to run it. Nothing is
// asked of anybody else's server.
//
// A page is a handler in page_NAME.go and a template in templates/NAME.html;
// routes.go has all of them on one screen. What the pages show comes from
// [Site].
package dashboard
