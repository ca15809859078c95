package setup

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/sites"
)

// Answers are the decisions of the owner. If a field is empty, the owner has not decided yet.
type Answers struct {
	Place     sites.Place
	Origin    string                    // URL of the site's own server, with sites.Front
	BaseURL   string                    // public URL of the site
	Purposes  map[millrace.Purpose]bool // decisions in addition to those of robots.txt
	Dashboard string                    // path of the dashboard, or None
}

// None is the answer for no dashboard.
const None = "none"

// dashboardPath is the dashboard's path in a new configuration. Few sites use this path
// themselves.
const dashboardPath = "/millrace"

// defaultListen is the listen address in a new configuration.
const defaultListen = "127.0.0.1:8080"

// prompter asks questions on a terminal. If in is nil, it uses the guesses.
type prompter struct {
	in  *bufio.Scanner
	out io.Writer
	log func(flag, guess string)
}

// ask returns the answer to a question that a flag can also answer. complete checks and completes
// the answer. After an error, ask repeats the question.
func (q *prompter) ask(flag, question, guess string, complete func(string) (string, error)) (string, error) {
	for q.in != nil {
		fmt.Fprintf(q.out, "%s [%s]: ", question, guess)
		if !q.in.Scan() {
			fmt.Fprintln(q.out)
			break
		}
		answer, err := complete(cmp.Or(strings.TrimSpace(q.in.Text()), guess))
		if err == nil {
			return answer, nil
		}
		fmt.Fprintf(q.out, "%v\n", err)
	}
	if q.in != nil && q.in.Err() != nil {
		return "", q.in.Err()
	}
	if guess == "" {
		return "", fmt.Errorf("--%s: %w: the flag is required without a terminal", flag, millrace.ErrInvalid)
	}
	q.log(flag, guess)
	return guess, nil
}

// oneOf accepts words and unambiguous beginnings of them, such as y for yes.
func oneOf(words ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		begins := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return s == "" || !strings.HasPrefix(w, strings.ToLower(s)) })
		if len(begins) != 1 {
			return "", fmt.Errorf("%q: %w: answer one of %s", s, millrace.ErrInvalid, strings.Join(words, ", "))
		}
		return begins[0], nil
	}
}

// Decide completes the report with the owner's answers. It asks for missing answers on in, a
// terminal. If in is nil, it uses guesses and calls log for each guess.
func (r *Report) Decide(a Answers, in io.Reader, out io.Writer, log func(flag, guess string)) (err error) {
	q := &prompter{out: out, log: log}
	if in != nil {
		q.in = bufio.NewScanner(in)
	}
	if r.Place = a.Place; a.Place == "" && a.Origin == "" {
		guess, places := sites.Alongside, []string{string(sites.Alongside), string(sites.Front), string(sites.Standalone)}
		if r.Folder() {
			guess = sites.Standalone
		}
		place, err := q.ask("place", "Where does millrace run?\n  alongside: your web server serves the pages, and asks millrace how to handle each request\n"+
			"  front: visitors connect to millrace, which passes requests on to your web server\n  standalone: no other web server\nplace", string(guess), oneOf(places...))
		if err != nil {
			return err
		}
		r.Place = sites.Place(place)
	}
	if r.Origin = a.Origin; r.Place == sites.Front && r.Origin == "" {
		r.Origin, err = q.ask("origin", "Address of your own web server, such as http://127.0.0.1:8000", "", func(s string) (string, error) { _, err := ingest.URL(s); return s, err })
		if err != nil {
			return err
		}
	}
	if r.Place, err = sites.PlaceOf(r.Place, r.Source, r.Origin); err != nil {
		return err
	}
	if a.BaseURL != "" {
		r.Site = a.BaseURL
	}
	if r.Site == "" && r.Place != sites.Standalone {
		r.Site, err = q.ask("base-url", "Public address of the site, such as https://www.example.com/", "", func(s string) (string, error) { _, err := ingest.Folder(s); return s, err })
		if err != nil {
			return err
		}
	}
	for _, p := range []struct {
		purpose  millrace.Purpose
		question string
	}{
		{millrace.AITrain, "May AI models be trained on the content? yes, no or undecided"},
		{millrace.AIInput, "May AI answers use the content? yes, no or undecided"},
		{millrace.Search, "May search engines use the content? yes, no or undecided"},
	} {
		if allowed, ok := a.Purposes[p.purpose]; ok {
			r.Purposes[p.purpose] = allowed
			continue
		}
		guess := "undecided"
		if allowed, ok := r.Purposes[p.purpose]; ok {
			guess = map[bool]string{true: "yes", false: "no"}[allowed]
		}
		answer, err := q.ask("policy "+string(p.purpose), p.question, guess, oneOf("yes", "no", "undecided"))
		if err != nil {
			return err
		}
		delete(r.Purposes, p.purpose)
		if answer != "undecided" {
			r.Purposes[p.purpose] = answer == "yes"
		}
	}
	r.Dashboard = a.Dashboard
	if r.Dashboard == "" {
		r.Dashboard, err = q.ask("dashboard", "Path of your dashboard, or none", dashboardPath, func(s string) (string, error) {
			if s != None && (!strings.HasPrefix(s, "/") || strings.Trim(s, "/") == "" || strings.ContainsFunc(s, special)) {
				return "", fmt.Errorf("%q: %w: write a path such as %s, or none", s, millrace.ErrInvalid, dashboardPath)
			}
			return s, nil
		})
		if err != nil {
			return err
		}
	}
	if r.Dashboard == None {
		r.Dashboard = ""
	}
	return nil
}

// Use sets the program of the site's own server: nginx, caddy or another.
func (r *Report) Use(program string) {
	r.program, r.Plain = program, program == "caddy" // the Caddy packages of Linux distributions cannot change HTML
}

// Folder reports whether the source is a folder.
func (r *Report) Folder() bool { return !strings.Contains(r.Source, "://") }
