package tct

import (
	"strings"
)

// isDigits reports whether s is 64 hexadecimal digits (4.2).
func isDigits(s string) bool {
	if len(s) != hashDigits {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// isHash reports whether s is "sha256-" and 64 hexadecimal digits.
func isHash(s string) bool {
	digits, ok := strings.CutPrefix(s, hashPrefix)
	return ok && isDigits(digits)
}
