package protocoltest

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// Conversation is a recorded exchange between a reader and a server, and its result. It contains a
// script, pairs of requests and responses in the only allowed order, and the output of the script.
// An empty file "response NAME" repeats the previous response with that name. As a RoundTripper, a
// Conversation is the server.
type Conversation struct {
	Script []string        // lines of the script, which the protocol interprets
	Out    strings.Builder // output of the script, written by the protocol

	t     *testing.T
	pairs []pair
}

type pair struct{ request, response string }

// Conversations runs the conversations of a folder, one per txtar file. If update is set, it writes
// their output to the files.
func Conversations(t *testing.T, dir string, update bool, run func(t *testing.T, c *Conversation)) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := newConversation(t, a)
			run(t, c)
			if len(c.pairs) > 0 {
				t.Errorf("never asked:\n%s", c.pairs[0].request)
			}
			last := &a.Files[len(a.Files)-1]
			if last.Name != "want" {
				t.Fatal("the last file must be want")
			}
			got := c.Out.String()
			if update {
				last.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(last.Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func newConversation(t *testing.T, a *txtar.Archive) *Conversation {
	c := &Conversation{t: t}
	named := map[string]string{}
	for _, f := range a.Files {
		switch text := string(f.Data); f.Name {
		case "script":
			c.Script = strings.Split(strings.TrimSpace(text), "\n")
		case "request":
			c.pairs = append(c.pairs, pair{request: strings.TrimSpace(text)})
		case "response":
			c.pairs[len(c.pairs)-1].response = text
		case "want":
		default:
			name, ok := strings.CutPrefix(f.Name, "response ")
			if !ok {
				t.Fatalf("unexpected file %s in a conversation", f.Name)
			}
			if text == "" {
				text = named[name]
			}
			named[name] = text
			c.pairs[len(c.pairs)-1].response = text
		}
	}
	return c
}

// Note writes a note of the reader without its text.
func (c *Conversation) Note(n protocol.Note) { fmt.Fprintf(&c.Out, "note %s %s\n", n.Rule, n.URL) }

// Error writes an error of the reader in the form of [ErrorAt], with the skipped page.
func (c *Conversation) Error(err error) {
	word := "error"
	if skip, ok := errors.AsType[*millrace.SkipError](err); ok {
		word = fmt.Sprintf("skip absent=%t %s:", skip.Absent, skip.URL)
	}
	fmt.Fprintf(&c.Out, "%s %s\n", word, ErrorAt(err))
}

// ErrorAt returns the part of an error that tests compare: its code, and the document and
// position of the fault.
func ErrorAt(err error) string {
	f := &millrace.FormatError{}
	errors.As(err, &f)
	return strings.Join(strings.Fields(millrace.ErrorCode(err)+" "+f.URL+" "+f.Position), " ")
}

// RoundTrip checks that a request is the next one of the conversation, including the header fields
// that affect the response, and returns the recorded response.
func (c *Conversation) RoundTrip(r *http.Request) (*http.Response, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Method, r.URL)
	for _, name := range []string{"Authorization", "Cache-Control", "If-None-Match", "If-Modified-Since"} {
		if v, ok := r.Header[name]; ok {
			fmt.Fprintf(&b, "\n%s: %s", name, strings.Join(v, ", "))
		}
	}
	if len(c.pairs) == 0 || c.pairs[0].request != b.String() {
		want := "nothing"
		if len(c.pairs) > 0 {
			want = c.pairs[0].request
		}
		c.t.Errorf("the reader sent\n%s\n\nbut the script has\n%s", b.String(), want)
		return nil, errors.New("request is not in the script")
	}
	head, body, _ := strings.Cut(c.pairs[0].response, "\n\n")
	c.pairs = c.pairs[1:]
	body = strings.TrimSuffix(body, "\n")
	head = strings.TrimSuffix(head, "\n") + "\n"
	if !strings.Contains(head, "Content-Length") {
		head += fmt.Sprintf("Content-Length: %d\n", len(body))
	}
	if r.Method == http.MethodHead || strings.HasPrefix(head, "HTTP/1.1 304") {
		body = ""
	}
	wire := strings.ReplaceAll(head, "\n", "\r\n") + "\r\n" + body
	return http.ReadResponse(bufio.NewReader(strings.NewReader(wire)), r)
}
