package dashboard

// tile is one figure at the top of a page.
type tile struct {
	Label  string
	Figure string
	Unit   string // text after the figure
	Note   string // text below the figure
	Kind   string // good, warn, bad, or ""
}
