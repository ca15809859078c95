package analytics

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// signed reports whether a message is signed by hookSecret.
func signed(h http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(hookSecret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), body)
	return err == nil && h.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{
		"umami=https://stats.example.com/?website=" + websiteID:                                        "https://stats.example.com/api/send",
		"umami=https://stats.example.com?website=" + websiteID:                                         "https://stats.example.com/api/send",
		"umami=https://example.com/umami/api/send?website=" + websiteID:                                "https://example.com/umami/api/send",
		"plausible=https://plausible.io/api/event/?domain=example.com#x":                               "https://plausible.io/api/event",
		"plausible=https://plausible.io?domain=example.com%2Fblog":                                     "https://plausible.io/api/event",
		"ga4=https://www.google-analytics.com/?measurement_id=G-ABC1234567&api_secret=hunter2":         "https://www.google-analytics.com/mp/collect?api_secret=hunter2&measurement_id=G-ABC1234567",
		"ga4=https://region1.google-analytics.com/mp/collect?measurement_id=G-ABC12345&api_secret=%26": "https://region1.google-analytics.com/mp/collect?api_secret=%26&measurement_id=G-ABC12345",
		"ga4=http://127.0.0.1:1/?measurement_id=G-ABC12345&api_secret=x":                               "http://127.0.0.1:1/mp/collect?api_secret=x&measurement_id=G-ABC12345",
		"webhook=https://hooks.example/in?t=hunter2":                                                   "https://hooks.example/in?t=hunter2",
	} {
		target, err := ParseTarget(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := target.url.String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if printed := fmt.Sprintf("%v %+v %#v %s %s", target, target, target, target, target.Name()); strings.Contains(printed, "hunter2") || strings.Contains(printed, "api_secret") {
			t.Errorf("%s prints as %s", text, printed)
		}
	}
	for text, want := range map[string]string{
		"":                                "target-kind",
		"https://stats.example.com/?k=v":  "target-kind",
		"matomo=https://a.example/":       "target-kind",
		"umami=stats.example.com/hunter2": "bad-scheme",
		"umami=https://me:hunter2@a.example/?website=" + websiteID:                "url-credentials",
		"umami=https://a.example/%zz?hunter2":                                     "bad-url",
		"umami=https://a.example/":                                                "query-missing",
		"umami=https://a.example/?website=hunter2":                                "bad-website",
		"umami=https://a.example/?website=" + websiteID + "&site=1":               "query-extra",
		"umami=https://a.example/?website=" + websiteID + "&website=" + websiteID: "query-extra",
		"plausible=https://a.example/?domain=a.example,b.example":                 "bad-domain",
		"plausible=https://a.example/?domain=https://a.example":                   "bad-domain",
		"ga4=https://a.example/?measurement_id=G-ABC1234567":                      "query-missing",
		"ga4=https://a.example/?measurement_id=UA-1-2&api_secret=hunter2":         "bad-measurement",
		"ga4=http://a.example/?measurement_id=G-ABC1234567&api_secret=hunter2":    "https-only",
		"ga4=https://a.example/?measurement_id=G-ABC1234567;api_secret=hunter2":   "bad-query",
		"webhook=ftp://a.example/hunter2":                                         "bad-scheme",
		"webhook=https://hunter2@a.example/":                                      "url-credentials",
	} {
		_, err := ParseTarget(text)
		if !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != want || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v: code %q, want %q", text, err, millrace.ErrorCode(err), want)
		}
	}
}

// A name identifies one receiver and does not depend on its secret.
func TestTargetName(t *testing.T) {
	name := func(text string) string {
		target, err := ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		return target.Name()
	}
	const ga = "ga4=https://www.google-analytics.com/mp/collect?measurement_id=G-ABC1234567&api_secret="
	if name(ga+"a") != name(ga+"b") {
		t.Error("a new secret makes it another receiver")
	}
	seen := map[string]string{}
	for _, text := range []string{
		ga + "a", strings.Replace(ga, "ABC", "XYZ", 1) + "a", "webhook=https://a.example/1", "webhook=https://a.example/2",
		"umami=https://a.example?website=" + websiteID, "umami=https://a.example?website=" + strings.Replace(websiteID, "3", "4", 1),
		"plausible=https://a.example?domain=a.example", "plausible=https://a.example?domain=b.example",
	} {
		if was, ok := seen[name(text)]; ok {
			t.Errorf("%s and %s have one name", was, text)
		}
		seen[name(text)] = text
	}
}

// A webhook requires a secret: without one, anyone could forge its messages.
func TestExporterSecret(t *testing.T) {
	target, err := ParseTarget("webhook=https://hooks.example/in")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewExporter(new(memory), new(memory), "site", target, fetch.New(nil).HTTP(), nil); !errors.Is(err, millrace.ErrInvalid) {
		t.Error(err)
	}
}
