package apply

import (
	"bytes"
	"fmt"
)

// Report is the report of `millrace up --json`, once the site is served.
type Report struct {
	Site      string   `json:"site"`      // public URL of the site
	Config    string   `json:"config"`    // configuration file
	URL       string   `json:"url"`       // base URL of the machine documents
	Dashboard string   `json:"dashboard"` // URL of the dashboard; "" = no dashboard
	Password  string   `json:"password"`  // new password of the dashboard, shown only once; "" = no new password
	Applied   []string `json:"applied"`   // programs that are now configured
	Undone    []string `json:"undone"`    // with --undo: files that were restored or removed
	Next      []string `json:"next"`      // commands to run next
	Seconds   float64  `json:"seconds"`   // duration of the command
}

// WriteText writes the report as text for people.
func (r *Report) WriteText(w *bytes.Buffer) {
	line := func(name, value, more string) {
		if value != "" {
			fmt.Fprintf(w, "%-10s %s%s\n", name, value, more)
		}
	}
	line("site", r.Site, "")
	line("dashboard", r.Dashboard, "")
	line("password", r.Password, "   (shown only once; millrace keys password creates another one)")
	line("settings", r.Config, "")
	for _, a := range r.Applied {
		line("applied", a, "; millrace up --undo restores the files")
	}
	for _, name := range r.Undone {
		line("undone", name, "")
	}
	for _, n := range r.Next {
		line("next", n, "")
	}
	if r.Config == "" && len(r.Undone) == 0 {
		fmt.Fprintln(w, "nothing to undo")
	}
}
