package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A receiver needs only the standard library.
func Example_verify() {
	verify := func(h http.Header, body []byte, secret string, now time.Time) bool {
		id, stamp := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
		sent, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil || now.Sub(time.Unix(sent, 0)).Abs() > 5*time.Minute {
			return false // an old timestamp may be a replay
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			return false
		}
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, id+"."+stamp+"."+string(body))
		for signature := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
			sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1,"))
			if err == nil && hmac.Equal(sum, mac.Sum(nil)) {
				return true
			}
		}
		return false
	}

	h := http.Header{
		"Webhook-Id":        {"msg_p5jXN8AQM9LWM0D4loKWxJek"},
		"Webhook-Timestamp": {"1614265330"},
		"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
	}
	secret, now := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", time.Unix(1614265333, 0)
	fmt.Println(verify(h, []byte(`{"test": 2432232314}`), secret, now))
	fmt.Println(verify(h, []byte(`{"test": 2432232315}`), secret, now))
	fmt.Println(verify(h, []byte(`{"test": 2432232314}`), secret, now.Add(time.Hour)))
	// Output:
	// true
	// false
	// false
}
