package dashboard

// tile is one figure at the head of a page.
type tile struct {
	Label  string
	Figure string
	Unit   string // beside the figure
	Note   string // below it
	Kind   string // good, warn, bad, or ""
}
