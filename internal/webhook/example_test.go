package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/webhook"
)

// A receiver needs nothing but the standard library.
func Example_verify() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	verify := func(h http.Header, body []byte) bool {
		id, stamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
		at, err := strconv.ParseInt(stamp, 10, 64)
		if age := time.Since(time.Unix(at, 0)); err != nil || age.Abs() > 5*time.Minute {
			return false // somebody may be sending again what he has seen
		}
		key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, id+"."+stamp+"."+string(body))
		for signature := range strings.FieldsSeq(h.Get("webhook-signature")) {
			sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1,"))
			if err == nil && hmac.Equal(sum, mac.Sum(nil)) {
				return true
			}
		}
		return false
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Println(string(body), err, verify(r.Header, body), verify(r.Header, append(body, ' ')))
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()

	secrets, _ := webhook.ParseSecrets(secret)
	client := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true}).HTTP()
	sender, err := webhook.New(client, receiver.URL, secrets, nil)
	if err == nil {
		err = sender.Send(context.Background(), []byte(`{"type":"site.changed"}`))
	}
	fmt.Println(err)
	// Output:
	// {"type":"site.changed"} <nil> true false
	// <nil>
}
