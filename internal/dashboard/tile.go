package dashboard

// tile is one figure at the top of a page.
type tile struct {
	Label  string
	Figure string
	Unit   string // after the figure
	Note   string // below it
	Kind   string // good, warn, bad, or ""
}
