package webauth

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/millrace/millrace"
)

// The key of RFC 9421, appendix B.1.4.
const (
	rfcSecret = "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU"
	rfcPublic = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"
)

func rfcKey(t testing.TB) *Key {
	t.Helper()
	seed, err := base64.RawURLEncoding.DecodeString(rfcSecret)
	if err != nil {
		t.Fatal(err)
	}
	return newKey(ed25519.NewKeyFromSeed(seed))
}

// RFC 8037, appendix A.3, has the thumbprint of the key of appendix A.1.
func TestThumbprint(t *testing.T) {
	for x, want := range map[string]string{
		"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
		rfcPublic: testKey,
	} {
		key, err := base64.RawURLEncoding.DecodeString(x)
		if err != nil {
			t.Fatal(err)
		}
		if got := Thumbprint(key); got != want {
			t.Errorf("Thumbprint(%s) = %s, want %s", x, got, want)
		}
	}
	if id := rfcKey(t).ID(); id != testKey {
		t.Errorf("the key's ID is %s", id)
	}
}

// RFC 9421, appendix B.2.6: signing produces the same signature, and it verifies.
func TestVectorB26(t *testing.T) {
	r, err := http.NewRequest(http.MethodPost, "https://example.com/foo?param=Value&Pet=dog", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Date": {"Tue, 20 Apr 2021 02:07:55 GMT"}, "Content-Type": {"application/json"}, "Content-Length": {"18"},
		"Signature-Input": {`sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`},
		"Signature":       {"sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:"},
	}
	all, err := signatures(r.Header, "")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	m := requestMessage(r, "")
	if err := all[0].verify(m, rfcKey(t).public()); err != nil {
		t.Error(err)
	}
	base, err := m.signatureBase(all[0].covered)
	if err != nil {
		t.Fatal(err)
	}
	if got := rfcKey(t).sign(base); string(got) != string(all[0].value) {
		t.Errorf("signed %x", got)
	}
	r.Header.Set("Content-Length", "19")
	if err := all[0].verify(m, rfcKey(t).public()); err == nil {
		t.Error("a changed field verifies")
	}
}

// agentVectors has the test vectors of the Web Bot Auth drafts, for a request to
// https://example.com/path/to/resource.
var agentVectors = []struct {
	name, agent, input, signature string
	at                            int64
}{
	{
		"dictionary", `sig2="https://signature-agent.test"`,
		`sig2=("@authority" "signature-agent";key="sig2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"`,
		"sig2=:CGokAoY/FrPpyuzTe1Fb2kLTAH9Idw6qSFd1+D77r1firsMRCxeuLu5e6O+ek3zQgDMAzjiXtLVfqE00xnABCQ==:", 1735689700,
	},
	{
		"a member of another label", `agent2="https://signature-agent.test"`,
		`sig2=("@authority" "signature-agent";key="agent2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"`,
		"sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:", 1735689700,
	},
	{
		"string", `"https://signature-agent.test"`,
		`sig2=("@authority" "signature-agent");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=1735693200;nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==";tag="web-bot-auth"`,
		"sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:", 1735693100,
	},
}

func TestAgentVectors(t *testing.T) {
	for _, tt := range agentVectors {
		t.Run(tt.name, func(t *testing.T) {
			v := NewVerifier(&VerifierOptions{
				Client: &http.Client{Transport: directoryAt{"https://signature-agent.test" + DirectoryPath: AppendDirectory(nil, []PublicKey{rfcKey(t).Public()})}},
				Bases:  []string{"https://example.com"},
			})
			v.maxAge, v.now = 200*365*24*time.Hour, func() time.Time { return time.Unix(tt.at, 0) }
			r := httptest.NewRequest(http.MethodGet, "/path/to/resource", http.NoBody)
			r.Header = http.Header{"Signature-Agent": {tt.agent}, "Signature-Input": {tt.input}, "Signature": {tt.signature}}
			// The private key is published, so the key must not identify an agent.
			if name, err := v.Verify(t.Context(), r); name != "" || err == nil {
				t.Errorf("the test key verifies: %q, %v", name, err)
			}
			v.dirs.test, v.dirs.dirs = true, map[string]*keyDirectory{}
			if name, err := v.Verify(t.Context(), r); name != "signature-agent.test" || err != nil {
				t.Errorf("Verify = %q, %v", name, err)
			}
			if _, err := v.Verify(t.Context(), r); millrace.ErrorCode(err) != "nonce-reused" {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}

// TestDirectoryVector verifies the signed directory of the draft's test vectors.
func TestDirectoryVector(t *testing.T) {
	const body = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig"}]}`
	h := http.Header{
		"Content-Digest":  {"sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:"},
		"Signature-Input": {`binding=("@authority";req "content-digest");created=1735689600;expires=4889289600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";tag="http-message-signatures-directory"`},
		"Signature":       {"binding=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:"},
	}
	keys, err := ParseDirectory([]byte(body))
	if err != nil || len(keys) != 1 || keys[0].ID != testKey {
		t.Fatal(keys, err)
	}
	for host, want := range map[string]int{"signature-agent.test": 1, "SIGNATURE-agent.test:443": 1, "other.test": 0} {
		req, err := http.NewRequest(http.MethodGet, "https://"+host+DirectoryPath, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		d := newDirectories(http.DefaultClient)
		d.now = func() time.Time { return time.Unix(1735689700, 0) }
		d.test = true
		resp := &http.Response{StatusCode: http.StatusOK, Header: h, Request: req}
		if got := d.proven(append([]PublicKey{}, keys...), req, resp); len(got) != want {
			t.Errorf("at %s: %d keys, want %d", host, len(got), want)
		}
	}
}

// TestComponents tests each component that RFC 9421, section 2.2, defines.
func TestComponents(t *testing.T) {
	const long = "/parameters?var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace&fa%C3%A7ade%22%3A%20=something&empty="
	r := httptest.NewRequest(http.MethodPost, long, http.NoBody)
	r.Host = "WWW.Example.com:443"
	r.Header = http.Header{
		"X-Ows": {"  leading and trailing  "}, "X-Twice": {"a", " b "}, "X-Empty": {""},
		"X-Dict": {`a=1, b=2;x=1;y=2, c=(a   b    c), d`},
	}
	m := requestMessage(r, "https://"+r.Host)
	plain := requestMessage(httptest.NewRequest(http.MethodGet, "https://example.com", http.NoBody), "https://example.com")
	for _, tt := range []struct {
		m        *message
		id, want string
	}{
		{m, `"@method"`, "POST"},
		{m, `"@authority"`, "www.example.com"},
		{m, `"@scheme"`, "https"},
		{m, `"@path"`, "/parameters"},
		{m, `"@target-uri"`, "https://www.example.com" + long},
		{m, `"@request-target"`, long},
		{m, `"@query"`, long[len("/parameters"):]},
		{plain, `"@query"`, "?"},
		{plain, `"@path"`, "/"},
		{m, `"x-ows"`, "leading and trailing"},
		{m, `"x-twice"`, "a, b"},
		{m, `"x-empty"`, ""},
		{m, `"host"`, "WWW.Example.com:443"},
		{m, `"x-dict";key="a"`, "1"},
		{m, `"x-dict";key="b"`, "2;x=1;y=2"},
		{m, `"x-dict";key="c"`, "(a b c)"},
		{m, `"x-dict";key="d"`, "?1"},
		{&message{status: 200}, `"@status"`, "200"},
		{&message{status: 200, req: m}, `"@authority";req`, "www.example.com"},

		// Errors.
		{m, `"@status"`, ""},
		{m, `"@unknown"`, ""},
		{m, `"X-Ows"`, ""},
		{m, `"x-none"`, ""},
		{m, `"x-ows";sf`, ""},
		{m, `"x-ows";bs`, ""},
		{m, `"@method";req`, ""},
		{m, `"x-dict";key="e"`, ""},
		{m, `"x-ows";key="a"`, ""},
		{m, `"@query-param";name="var"`, ""},
		{&message{status: 200}, `"@method"`, ""},
		{m, `"x-ows" "x-ows"`, ""},
		{m, `token`, ""},
	} {
		dict, err := httpsfv.UnmarshalDictionary([]string{"s=(" + tt.id + ")"})
		if err != nil {
			t.Fatal(tt.id, err)
		}
		list, _ := dict.Get("s")
		base, err := tt.m.signatureBase(list.(httpsfv.InnerList))
		if tt.want == "" && !strings.Contains(tt.id, "empty") {
			if err == nil {
				t.Errorf("%s: no error, but %q", tt.id, base)
			}
			continue
		}
		if want := tt.id + ": " + tt.want + "\n" + `"@signature-params": (` + tt.id + ")"; err != nil || string(base) != want {
			t.Errorf("%s:\n got %q, %v\nwant %q", tt.id, base, err, want)
		}
	}
}
