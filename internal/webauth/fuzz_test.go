package webauth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// No header causes a panic, and no unsigned request is verified.
func FuzzVerify(f *testing.F) {
	for _, v := range agentVectors {
		f.Add(v.agent, v.input, v.signature, "/path/to/resource")
	}
	f.Add(`a="https://x.test/k?q"`, `a=("@target-uri" "@query-param";name="a" "@query" "signature-agent";key="a");created=1;expires=2;tag="web-bot-auth"`, "a=:AA==:", "/a?a=b&c")
	f.Add("", "a=()", "a=1", "*")
	directory := AppendDirectory(nil, []PublicKey{newTestKey(f, 1).Public(), rfcKey(f).Public()})
	any := roundTrip(func(r *http.Request) (*http.Response, error) {
		return directoryAt{r.URL.String(): directory}.RoundTrip(r)
	})
	f.Fuzz(func(t *testing.T, agent, input, value, target string) {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.URL.Path = target
		r.Header = http.Header{"Signature-Agent": {agent}, "Signature-Input": {input}, "Signature": {value}}
		v := NewVerifier(&VerifierOptions{Client: &http.Client{Transport: any}, Bases: []string{"https://other.test"}})
		v.maxAge, v.now = 1e18, func() time.Time { return time.Unix(1735689700, 0) }
		v.dirs.test = true
		if name, err := v.Verify(context.Background(), r); name != "" {
			t.Errorf("%q was identified on another site, %v", name, err)
		}
		verifier := NewResponseVerifier(nil)
		_, _ = verifier.Check(&http.Response{StatusCode: http.StatusOK, Request: r, Header: r.Header})
	})
}

// A parsed directory equals the directory that is written and parsed again.
func FuzzParseDirectory(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","nbf":1712793600,"exp":1715385600}]}`))
	f.Add([]byte(`{"keys":[{"kty":"RSA"},1,{"kty":"OKP","crv":"Ed25519","x":"","nbf":-1,"exp":1e300}]}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		keys, err := ParseDirectory(file)
		if err != nil {
			return
		}
		written := AppendDirectory(nil, keys)
		again, err := ParseDirectory(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if got := AppendDirectory(nil, again); string(got) != string(written) || len(again) != len(keys) {
			t.Errorf("%s is read as %s", written, got)
		}
	})
}

// No file causes a panic.
func FuzzParseKeys(f *testing.F) {
	if pem, err := newTestKey(f, 1).PEM(); err == nil {
		f.Add(pem)
	}
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		keys, err := ParseKeys(file)
		if err == nil && len(file) > 0 && file[0] == '-' && len(keys) == 0 {
			t.Error("neither keys nor an error")
		}
		if key, err := ParseKey(file); err == nil && key.ID() != Thumbprint(key.public()) {
			t.Error("a key has a different ID")
		}
	})
}
