package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// networkText returns the code and the description of a connection error. For an unknown
// error, the description is the error's own text.
func networkText(err error) (code, text string) {
	if text := certificateText(err); text != "" {
		return "certificate", text
	}
	text = err.Error()
	if no, ok := errors.AsType[*net.DNSError](err); ok {
		if no.IsNotFound {
			return "dns-unknown", fmt.Sprintf("unknown host %s: the name does not exist in DNS", no.Name)
		}
		return "dns", fmt.Sprintf("cannot resolve the address of %s: %s", no.Name, no.Err)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "no-tls", "the server does not use TLS; if the site has no https, use http://"
	}
	if alert, ok := strings.CutPrefix(text, "remote error: tls: "); ok {
		return "tls", "the server refused TLS: " + alert
	}
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "no-tls", "the server uses http, not https"
	case strings.Contains(text, "timeout awaiting response headers"):
		return "timeout-response", fmt.Sprintf("no response within %s", firstByteTimeout)
	case strings.Contains(text, "TLS handshake timeout"):
		return "timeout-tls", fmt.Sprintf("no TLS connection within %s", tlsTimeout)
	case strings.Contains(text, "response headers exceeded"):
		var n int64
		_, rest, _ := strings.Cut(text, "exceeded ")
		_, _ = fmt.Sscan(rest, &n)
		return "header-size", fmt.Sprintf("the header of the response is longer than %d bytes", n)
	case strings.Contains(text, "malformed"), strings.Contains(text, "readLoopPeekFailLocked"), strings.Contains(text, "unsolicited response"):
		return "no-http", "the server does not use HTTP"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), strings.Contains(text, "server closed idle connection"):
		return "connection-closed", "the server closed the connection too early"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection-closed", "the connection was reset"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection-refused", text
	}
	return "", text
}

// certificateText describes what is wrong with a certificate and how to fix it. It returns "" for
// other errors.
func certificateText(err error) string {
	if no, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		switch now := time.Now(); {
		case no.Reason != x509.Expired || no.Cert == nil:
		case now.After(no.Cert.NotAfter):
			return fmt.Sprintf("its certificate expired on %s, by this machine's clock; its owner must renew it",
				no.Cert.NotAfter.UTC().Format(time.DateOnly))
		default:
			return fmt.Sprintf("its certificate is not valid before %s, and this machine's clock shows %s; check the clock",
				no.Cert.NotBefore.UTC().Format(time.DateOnly), now.UTC().Format(time.DateOnly))
		}
		return "its certificate is not valid: " + strings.TrimPrefix(no.Error(), "x509: ")
	}
	if no, ok := errors.AsType[x509.HostnameError](err); ok {
		names := "no host"
		if no.Certificate != nil && len(no.Certificate.DNSNames) > 0 {
			names = strings.Join(no.Certificate.DNSNames[:min(3, len(no.Certificate.DNSNames))], ", ")
		}
		return fmt.Sprintf("its certificate is for %s, not for %s; check the host name, or notify the owner", names, no.Host)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is signed by an unknown authority; to trust it, set SSL_CERT_FILE to the authority's file"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate cannot be verified: " + err.Error()
	}
	return ""
}
