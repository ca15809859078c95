package extract

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// Errors in Result.Reason.
var (
	errNoText  = millrace.Coded("no-content", errors.New("the document has no text"))
	errNoWords = millrace.Coded("no-content", errors.New("the document has no content"))
	errFrames  = millrace.Coded("frames", errors.New("the document is only a frameset"))
	errLogin   = millrace.Coded("login", errors.New("the page is a login page"))
	errConsent = millrace.Coded("consent-wall", errors.New("the page only asks for consent"))
	errRobots  = millrace.Coded("robot-wall", errors.New("the page is a bot check, or blocks bots"))
	errScripts = millrace.Coded("script-wall", errors.New("the page has no text without JavaScript"))
)

// wall returns an error if the page shows something else in place of content, such as a login or a
// bot check.
func (l *located) wall(m *meta) error {
	body := &l.c.boxes[0]
	switch {
	case l.login:
		return errLogin
	case l.consent, isConsentHost(m.url.Hostname()) && body.words < 1000:
		return errConsent
	case body.words > 300, body.words > 150 && !isRobotTitle(l.c.title):
		return nil
	case body.words < 3 && l.c.wants:
		return errScripts
	}
	text := lower(plainText(l.c.body))
	if isRobotTitle(l.c.title) || contains(text, robotTexts) || body.words <= 40 && find(l.c.body, isChallenge) != nil {
		return errRobots
	}
	if body.words <= 40 && contains(text, scriptTexts) || body.words <= 10 && l.isMount() {
		return errScripts
	}
	return nil
}

// isMount reports whether a script draws the page into an empty element: the document has a script
// file, an empty element with a name, and no heading, paragraph or picture.
func (l *located) isMount() bool {
	mount := false
	if find(l.c.body, func(n *html.Node) bool {
		switch n.DataAtom {
		case atom.Div, atom.Main, atom.Section, 0:
			mount = mount || firstChild(n) == nil && !hasOwnText(n) && (n.DataAtom == 0 && strings.Contains(n.Data, "-") || attr(n, "id") != "")
		case atom.P, atom.H1, atom.H2, atom.H3, atom.Li, atom.Td, atom.Pre, atom.Img, atom.Iframe, atom.Video, atom.Form, atom.Input:
			return isHidden(n) == "" && !within(n, 5, atom.Noscript)
		}
		return false
	}) != nil || !mount {
		return false
	}
	root := l.c.body
	for root.Parent != nil {
		root = root.Parent
	}
	return find(root, func(n *html.Node) bool { return n.DataAtom == atom.Script && attr(n, "src") != "" }) != nil
}

// isConsentHost reports whether a host is one to which sites redirect visitors to ask for consent.
func isConsentHost(host string) bool {
	label, _, _ := strings.Cut(strings.ToLower(host), ".")
	return label == "consent" || label == "guce"
}

// lower returns a text in lower case with straight apostrophes, for comparison.
func lower(s string) string { return strings.ToLower(strings.ReplaceAll(s, "’", "'")) }

// isRobotTitle reports whether a title is that of a bot check by Cloudflare, Akamai, Sucuri,
// Vercel, Imperva or another service.
func isRobotTitle(title string) bool {
	title = lower(title)
	for _, mark := range []string{" | ", " - "} {
		title, _, _ = strings.Cut(title, mark)
	}
	return slices.Contains(robotTitles, strings.Trim(title, " .…!?"))
}

var robotTitles = []string{
	"just a moment", "attention required", "access denied", "access to this page has been denied", "ddos protection", "ddos-guard", "robot check", "are you a robot",
	"verify you are human", "verifying you are human", "human verification", "security check", "vercel security checkpoint", "bot verification", "captcha", "request blocked",
	"pardon our interruption", "making sure you're not a bot", "you have been blocked", "one moment, please", "client challenge", "checking your browser",
	"403 forbidden", "429 too many requests", "un instant", "nur einen moment",
}

// robotTexts are phrases of bot checks.
var robotTexts = []string{
	"checking your browser", "checking if the site connection is secure", "verifying your browser", "verify you are human", "verifying you are human", "verify that you are human",
	"verify you're human", "confirm you are a human", "confirm you are human", "confirm that you are human", "prove you are human", "make sure you're not a robot", "making sure you're not a bot",
	"you're not a robot", "you are not a robot", "you are a robot", "you are a bot", "needs to review the security of your connection", "enable javascript and cookies to continue",
	"please enable js and disable any ad blocker", "unusual traffic from your", "incapsula incident id", "has been denied because we believe you are using automation",
	"you don't have permission to access", "complete the security check", "complete the captcha", "solve the captcha", "solving the captcha", "blocked by network security",
	"this website is using a security service to protect itself", "your access to this site has been limited",
}

// scriptTexts are phrases of pages that require scripts.
var scriptTexts = []string{
	"enable javascript", "javascript is disabled", "javascript is required", "requires javascript", "javascript to be enabled", "turn on javascript", "turn javascript on",
	"without javascript", "javascript enabled", "javascript aktivieren", "activer javascript", "activez javascript", "habilite javascript", "activar javascript", "abilita javascript",
}

// isChallenge reports whether an element belongs to a bot check, such as its puzzle.
func isChallenge(n *html.Node) bool {
	switch attr(n, "id") {
	case "challenge-form", "challenge-running", "challenge-stage", "cf-wrapper", "px-captcha", "captcha-container", "main-iframe":
		return true
	}
	if n.DataAtom == atom.Iframe || n.DataAtom == atom.Script {
		src := attr(n, "src")
		return strings.Contains(src, "captcha-delivery.com") || strings.Contains(src, "_Incapsula_Resource") || strings.Contains(src, "/cdn-cgi/challenge-platform/h/")
	}
	return false
}

func contains(s string, of []string) bool {
	for _, w := range of {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
