package webauth

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// directoryAt is a transport that returns bodies by URL, or 404.
type directoryAt map[string][]byte

func (d directoryAt) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ok := d[r.URL.String()]
	status := http.StatusOK
	if !ok {
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

// clock is a clock that the test sets.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.at.Store(1_800_000_000)
	return c
}

func (c *clock) now() time.Time        { return time.Unix(c.at.Load(), 0) }
func (c *clock) pass(by time.Duration) { c.at.Add(int64(by.Seconds())) }
func (c *clock) ahead(by time.Duration) func() time.Time {
	return func() time.Time { return c.now().Add(by) }
}

func newTestKey(t testing.TB, seed byte) *Key {
	t.Helper()
	key, err := NewKey(bytes.NewReader(bytes.Repeat([]byte{seed}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

const (
	botDirectory = "https://bot.test" + DirectoryPath
	siteBase     = "https://site.test"
)

// world is a site that verifies signatures, and a bot with its directory.
type world struct {
	t        *testing.T
	clock    *clock
	key      *Key
	verifier *Verifier
	signer   *Signer
}

func newWorld(t *testing.T, directories directoryAt) *world {
	w := &world{t: t, clock: newClock(), key: newTestKey(t, 1)}
	if directories == nil {
		directories = directoryAt{}
	}
	if directories[botDirectory] == nil {
		directories[botDirectory] = AppendDirectory(nil, []PublicKey{w.key.Public()})
	}
	w.verifier = w.verifies(&http.Client{Transport: directories})
	w.signer = w.sign(botDirectory, w.key, nil)
	return w
}

// verifies returns the site's verifier, which uses the clock.
func (w *world) verifies(client *http.Client) *Verifier {
	v := NewVerifier(&VerifierOptions{Client: client, Bases: []string{siteBase}})
	v.now, v.dirs.now = w.clock.now, w.clock.now
	return v
}

// sign returns a signer that uses the clock. edit may change it.
func (w *world) sign(directory string, key *Key, edit func(*Signer)) *Signer {
	s, err := NewSigner(key, directory)
	if err != nil {
		w.t.Fatal(err)
	}
	if s.now = w.clock.now; edit != nil {
		edit(s)
	}
	return s
}

// arrive returns a request as the site receives it, signed by s.
func (w *world) arrive(s *Signer, method, target string) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), method, siteBase+target, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.Sign(r); err != nil {
		w.t.Fatal(err)
	}
	in := httptest.NewRequest(method, target, http.NoBody)
	in.Host, in.Header = r.URL.Host, r.Header
	return in
}

func (w *world) verify(r *http.Request, want string, wantErr error, text string) {
	w.t.Helper()
	name, err := w.verifier.Verify(context.Background(), r)
	if name != want || !errors.Is(err, wantErr) || millrace.ErrorCode(err) != text {
		w.t.Errorf("Verify = %q, %v; want %q, %v: code %q, want %q", name, err, want, wantErr, millrace.ErrorCode(err), text)
	}
}

func TestVerify(t *testing.T) {
	w := newWorld(t, nil)
	w.verify(w.arrive(w.signer, http.MethodGet, "/a?b=c"), "bot.test", nil, "")
	w.verify(httptest.NewRequest(http.MethodGet, "/", http.NoBody), "", nil, "")
	// A signature for another purpose identifies no bot.
	r := w.arrive(w.signer, http.MethodGet, "/")
	r.Header.Set("Signature-Input", strings.Replace(r.Header.Get("Signature-Input"), botTag, "other", 1))
	w.verify(r, "", nil, "")
}

// Any change of a request invalidates its signature.
func TestVerifyAttacks(t *testing.T) {
	edit := func(from, to string) func(*world, *http.Request) {
		return func(w *world, r *http.Request) {
			was := r.Header.Get("Signature-Input")
			if r.Header.Set("Signature-Input", strings.Replace(was, from, to, 1)); r.Header.Get("Signature-Input") == was {
				w.t.Fatalf("%q is missing in %s", from, was)
			}
		}
	}
	later := func(by time.Duration) func(*world, *http.Request) {
		return func(w *world, _ *http.Request) { w.clock.pass(by) }
	}
	for name, tt := range map[string]struct {
		change func(*world, *http.Request)
		err    error
		text   string
	}{
		"another path":              {func(_ *world, r *http.Request) { r.RequestURI = "/b" }, millrace.ErrInvalid, "rfc9421/3.2"},
		"another method":            {func(_ *world, r *http.Request) { r.Method = http.MethodPost }, millrace.ErrInvalid, "rfc9421/3.2"},
		"another agent":             {func(_ *world, r *http.Request) { r.Header.Set("Signature-Agent", `sig1="https://known.test"`) }, millrace.ErrUnavailable, "unavailable"},
		"forged":                    {func(w *world, r *http.Request) { w.forge(r) }, millrace.ErrInvalid, "rfc9421/3.2"},
		"no signature":              {func(_ *world, r *http.Request) { r.Header.Del("Signature") }, millrace.ErrInvalid, "rfc9421/4.2"},
		"a short signature":         {func(_ *world, r *http.Request) { r.Header.Set("Signature", "sig1=:AAAA:") }, millrace.ErrInvalid, "rfc9421/4.2"},
		"expired":                   {later(time.Minute), millrace.ErrInvalid, "signature-expired"},
		"long expired":              {later(time.Hour * 1000), millrace.ErrInvalid, "signature-expired"},
		"made longer":               {edit("expires=1800000060", "expires=1800000600"), millrace.ErrInvalid, "rfc9421/3.2"},
		"valid for a year":          {edit("expires=1800000060", "expires=1831536000"), millrace.ErrInvalid, "signature-long"},
		"without a creation time":   {edit(";created=1800000000", ""), millrace.ErrInvalid, "signature-time"},
		"without an expiry time":    {edit(";expires=1800000060", ""), millrace.ErrInvalid, "signature-time"},
		"of fractions":              {edit("created=1800000000", "created=1800000000.0"), millrace.ErrInvalid, "signature-time"},
		"without authority":         {edit(`"@authority" `, ""), millrace.ErrInvalid, "no-authority"},
		"authority of another site": {edit(`"@authority"`, `"@authority";req`), millrace.ErrInvalid, "no-authority"},
		"without agent":             {edit(` "signature-agent";key="sig1"`, ""), millrace.ErrInvalid, "agent-cover"},
		"another member":            {edit(`key="sig1"`, `key="sig9"`), millrace.ErrInvalid, "agent-form"},
		"without path":              {edit(`"@path" `, ""), millrace.ErrInvalid, "rfc9421/3.2"},
		"an unknown component":      {edit(`"@path"`, `"@pad"`), millrace.ErrInvalid, "rfc9421/2.2"},
		"a key without an ID":       {edit(`keyid="`, `keyid="x`), millrace.ErrInvalid, "bad-keyid"},
		"an unknown key":            {edit(newTestKey(t, 1).ID(), newTestKey(t, 2).ID()), millrace.ErrNotFound, "no-key"},
		"no agent":                  {func(_ *world, r *http.Request) { r.Header.Del("Signature-Agent") }, millrace.ErrInvalid, "no-agent"},
		"an agent over http":        {func(_ *world, r *http.Request) { r.Header.Set("Signature-Agent", `sig1="http://bot.test"`) }, millrace.ErrInvalid, "agent-scheme"},
		"an agent with a data URL":  {func(_ *world, r *http.Request) { r.Header.Set("Signature-Agent", `sig1="data:x,{}"`) }, millrace.ErrInvalid, "agent-url"},
		"an agent with a password":  {func(_ *world, r *http.Request) { r.Header.Set("Signature-Agent", `sig1="https://a:b@bot.test"`) }, millrace.ErrInvalid, "agent-credentials"},
		"an agent of another type":  {func(_ *world, r *http.Request) { r.Header.Set("Signature-Agent", `sig1="https://bot.test";type=cimd`) }, millrace.ErrInvalid, "agent-form"},
		"no dictionary":             {func(_ *world, r *http.Request) { r.Header.Set("Signature-Input", `sig1=(`) }, millrace.ErrInvalid, "rfc9421/4.1"},
		"rfc9421/4.1":               {func(_ *world, r *http.Request) { r.Header.Set("Signature-Input", `sig1=1`) }, millrace.ErrInvalid, "rfc9421/4.1"},
		"of many": {func(_ *world, r *http.Request) {
			for i := range 10 {
				r.Header.Add("Signature-Input", fmt.Sprintf("s%d=()", i))
			}
		}, millrace.ErrInvalid, "rfc9421/4.1"},
		"of much": {func(_ *world, r *http.Request) {
			r.Header.Set("Signature-Input", "sig1=("+strings.Repeat(`"a" `, 40)+`);tag="web-bot-auth"`)
		}, millrace.ErrInvalid, "rfc9421/4.1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			r := w.arrive(w.signer, http.MethodGet, "/a")
			tt.change(w, r)
			w.verify(r, "", tt.err, tt.text)
		})
	}
}

// forge signs a request with another key under the ID of the bot's key.
func (w *world) forge(r *http.Request) {
	key := newTestKey(w.t, 9)
	key.id = w.key.id
	r.Header = w.arrive(w.sign(botDirectory, key, nil), r.Method, r.URL.Path).Header
}

func TestVerifyAnotherSite(t *testing.T) {
	w := newWorld(t, nil)
	r, err := http.NewRequest(http.MethodGet, "https://other.test/a", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.signer.Sign(r); err != nil {
		t.Fatal(err)
	}
	in := httptest.NewRequest(http.MethodGet, "/a", http.NoBody)
	in.Header = r.Header
	// A receiver of a request cannot forward it, with any Host.
	for _, host := range []string{"site.test", "other.test"} {
		in.Host = host
		w.verify(in, "", millrace.ErrInvalid, "rfc9421/3.2")
	}
	// A proxy may have changed the Host of a request to the site.
	in = w.arrive(w.signer, http.MethodGet, "/a")
	in.Host = "127.0.0.1:8080"
	w.verify(in, "bot.test", nil, "")
}

func TestVerifyTime(t *testing.T) {
	w := newWorld(t, nil)
	w.verify(w.arrive(w.sign(botDirectory, w.key, func(s *Signer) { s.now = w.clock.ahead(skew) }), http.MethodGet, "/"), "bot.test", nil, "")
	w.verify(w.arrive(w.sign(botDirectory, w.key, func(s *Signer) { s.now = w.clock.ahead(skew + time.Second) }), http.MethodGet, "/"),
		"", millrace.ErrInvalid, "signature-early")
	w.verify(w.arrive(w.sign(botDirectory, w.key, func(s *Signer) { s.now = w.clock.ahead(-59 * time.Second) }), http.MethodGet, "/"), "bot.test", nil, "")
	w.verify(w.arrive(w.sign(botDirectory, w.key, func(s *Signer) { s.lifetime = 25 * time.Hour }), http.MethodGet, "/"),
		"", millrace.ErrInvalid, "signature-long")
}

func TestVerifyReplay(t *testing.T) {
	w := newWorld(t, nil)
	r := w.arrive(w.signer, http.MethodGet, "/")
	w.verify(r, "bot.test", nil, "")
	w.verify(r, "", millrace.ErrInvalid, "nonce-reused")
	w.verify(w.arrive(w.signer, http.MethodGet, "/"), "bot.test", nil, "")
	// Of many concurrent requests with one nonce, one is accepted.
	r = w.arrive(w.signer, http.MethodGet, "/")
	var good atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if name, err := w.verifier.Verify(context.Background(), r); err == nil && name == "bot.test" {
				good.Add(1)
			}
		})
	}
	all.Wait()
	if n := good.Load(); n != 1 {
		t.Errorf("%d copies of the same request were accepted", n)
	}
}

// A verifier returned by At shares the used nonces.
func TestVerifierAt(t *testing.T) {
	w := newWorld(t, nil)
	r, fresh := w.arrive(w.signer, http.MethodGet, "/"), w.arrive(w.signer, http.MethodGet, "/")
	w.verify(r, "bot.test", nil, "")
	first := w.verifier
	w.verifier = first.At(first.now, "https://new.test", siteBase+":443")
	w.verify(r, "", millrace.ErrInvalid, "nonce-reused")
	w.verify(fresh, "bot.test", nil, "")
	w.verifier = first.At(first.now, "https://new.test")
	w.verify(w.arrive(w.signer, http.MethodGet, "/"), "", millrace.ErrInvalid, "rfc9421/3.2")
}

func TestNonces(t *testing.T) {
	n, now := newNonces(), time.Unix(1000, 0)
	n.most = 10
	for i := range 1000 {
		if !n.use("d", "k", fmt.Sprint(i), now.Add(time.Hour), now) {
			t.Fatalf("nonce %d is refused", i)
		}
		if n.use("d", "k", fmt.Sprint(i), now.Add(time.Hour), now) {
			t.Fatalf("nonce %d is accepted again", i)
		}
		if len(n.young)+len(n.old) > 20 {
			t.Fatalf("%d nonces are stored", len(n.young)+len(n.old))
		}
	}
	if !n.use("d2", "k", "999", now, now) || !n.use("d", "k2", "999", now, now) {
		t.Error("a nonce of another key is refused")
	}
	if !n.use("d", "k", "999", now, now.Add(2*time.Hour)) {
		t.Error("a nonce is stored longer than its signature is valid")
	}
}

// A directory identifies its host only at the well-known path. A key is valid only for its own
// directory.
func TestVerifyNames(t *testing.T) {
	w := newWorld(t, directoryAt{
		"https://bot.test/users/eve.json?x=1":            AppendDirectory(nil, []PublicKey{newTestKey(t, 2).Public()}),
		"https://known.test" + DirectoryPath:             AppendDirectory(nil, []PublicKey{newTestKey(t, 3).Public()}),
		"https://known.test:8443" + DirectoryPath + "?q": AppendDirectory(nil, []PublicKey{newTestKey(t, 3).Public()}),
	})
	w.verify(w.arrive(w.sign("https://BOT.test:443", w.key, nil), http.MethodGet, "/"), "bot.test", nil, "")
	w.verify(w.arrive(w.sign("https://bot.test/", w.key, nil), http.MethodGet, "/"), "bot.test", nil, "")
	w.verify(w.arrive(w.sign("https://bot.test/users/eve.json?x=1#y", newTestKey(t, 2), nil), http.MethodGet, "/"), "https://bot.test/users/eve.json", nil, "")
	w.verify(w.arrive(w.sign("https://known.test:8443"+DirectoryPath+"?q", newTestKey(t, 3), nil), http.MethodGet, "/"), "known.test:8443", nil, "")
	// Eve's key is in another directory than the one that the request names.
	w.verify(w.arrive(w.sign("https://known.test", newTestKey(t, 2), nil), http.MethodGet, "/"), "", millrace.ErrNotFound, "no-key")
	w.verify(w.arrive(w.sign("https://known.test", w.key, nil), http.MethodGet, "/"), "", millrace.ErrNotFound, "no-key")
}

// If one of two signatures is wrong, the other one is used.
func TestVerifySeveral(t *testing.T) {
	w := newWorld(t, nil)
	r := w.arrive(w.signer, http.MethodGet, "/")
	input, value := r.Header.Get("Signature-Input"), r.Header.Get("Signature")
	r.Header.Set("Signature-Input", strings.Replace(input, "sig1=", "bad=", 1)+", "+input)
	r.Header.Set("Signature", "bad=:"+strings.Repeat("A", 86)+"==:, "+value)
	w.verify(r, "bot.test", nil, "")
	// A signature with an unknown algorithm is ignored.
	r = w.arrive(w.signer, http.MethodGet, "/")
	r.Header.Set("Signature-Input", `x=("@authority");alg="rsa-pss-sha512";tag="web-bot-auth", `+r.Header.Get("Signature-Input"))
	w.verify(r, "bot.test", nil, "")
	// A proxy's additions are ignored: a value of another type, and a label without a
	// signature.
	for _, value := range []string{"x=:" + strings.Repeat("AAAA", 85) + ":, ", "x=?1, ", ""} {
		r = w.arrive(w.signer, http.MethodGet, "/")
		r.Header.Set("Signature-Input", `x=("@method");keyid="k", `+r.Header.Get("Signature-Input"))
		r.Header.Set("Signature", value+r.Header.Get("Signature"))
		w.verify(r, "bot.test", nil, "")
	}
}

// The path is verified as sent. Clients do not encode all the characters that others do.
func TestVerifyPath(t *testing.T) {
	w := newWorld(t, nil)
	for _, target := range []string{`/a|b"{c}^`, "/a%7cb", "/%61", "/a//b/./c/", "/a?b|c"} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set(agentField, botLabel+`="`+botDirectory+`"`)
		covered := components("@authority", "@path", "@query", "@request-target")
		covered.Items = append(covered.Items, with("signature-agent", "key", botLabel))
		m := &message{method: r.Method, base: siteBase, target: target, field: r.Header}
		input, value, err := w.key.signMessage(m, botLabel, covered, w.clock.now(), w.clock.now().Add(time.Minute), botTag, "")
		if err != nil {
			t.Fatal(err)
		}
		in, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: site.test\r\n\r\n")))
		if err != nil {
			t.Fatal(err)
		}
		in.Header = r.Header
		in.Header["Signature-Input"], in.Header["Signature"] = []string{input}, []string{value}
		w.verify(in, "bot.test", nil, "")
	}
}

// A verifier without a client verifies nothing.
func TestVerifyOffline(t *testing.T) {
	w := newWorld(t, nil)
	w.verifier = w.verifies(nil)
	w.verify(w.arrive(w.signer, http.MethodGet, "/"), "", millrace.ErrUnavailable, "no-directories")
}

// The guarded client refuses private addresses, however they are spelled.
func TestVerifyPrivate(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	w := newWorld(t, nil)
	client := fetch.New(ClientOptions(nil))
	w.verifier = w.verifies(client.HTTP())
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	for _, host := range []string{
		"127.0.0.1" + port, "localhost" + port, "[::1]" + port, "[::ffff:127.0.0.1]" + port, "0.0.0.0" + port, "2130706433" + port,
		"10.0.0.1", "192.168.1.1", "169.254.169.254", "[fe80::1]", "[fd00::1]", "100.100.100.200",
	} {
		s, err := NewSigner(w.key, "https://"+host+"/keys")
		if err != nil {
			continue // not a valid host
		}
		name, err := w.verifier.Verify(t.Context(), w.arrive(s, http.MethodGet, "/"))
		if name != "" || !errors.Is(err, millrace.ErrUnavailable) && !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: %q, %v", host, name, err)
		}
	}
	if asked.Load() != 0 {
		t.Error("a request was sent to a private address")
	}
}
