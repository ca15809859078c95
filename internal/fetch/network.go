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
			return "dns-unknown", fmt.Sprintf("there is no host %s: DNS does not know the name", no.Name)
		}
		return "dns", fmt.Sprintf("the address of %s could not be found out: %s", no.Name, no.Err)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "no-tls", "what answers there does not speak TLS, as https needs it: is it a site of http?"
	}
	if alert, ok := strings.CutPrefix(text, "remote error: tls: "); ok {
		return "tls", "the server does not agree to TLS: " + alert
	}
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "no-tls", "what answers there speaks http, not https"
	case strings.Contains(text, "timeout awaiting response headers"):
		return "timeout-answer", fmt.Sprintf("no answer for %s", firstByteTimeout)
	case strings.Contains(text, "TLS handshake timeout"):
		return "timeout-tls", fmt.Sprintf("TLS was not agreed on for %s", tlsTimeout)
	case strings.Contains(text, "response headers exceeded"):
		var n int64
		_, rest, _ := strings.Cut(text, "exceeded ")
		_, _ = fmt.Sscan(rest, &n)
		return "header-size", fmt.Sprintf("the header of the answer is longer than %d bytes", n)
	case strings.Contains(text, "malformed"), strings.Contains(text, "readLoopPeekFailLocked"), strings.Contains(text, "unsolicited response"):
		return "no-http", "what answers there does not speak HTTP"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), strings.Contains(text, "server closed idle connection"):
		return "connection-closed", "the connection was closed too early"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection-closed", "the connection was broken off"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection-refused", text
	}
	return "", text
}

// certificateText returns what is wrong with a certificate and how to fix it, or "" for other
// errors.
func certificateText(err error) string {
	if no, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		switch now := time.Now(); {
		case no.Reason != x509.Expired || no.Cert == nil:
		case now.After(no.Cert.NotAfter):
			return fmt.Sprintf("its certificate has expired on %s, by this machine's clock: its owner has to renew it",
				no.Cert.NotAfter.UTC().Format(time.DateOnly))
		default:
			return fmt.Sprintf("its certificate holds from %s on, and this machine's clock says %s: look at the clock",
				no.Cert.NotBefore.UTC().Format(time.DateOnly), now.UTC().Format(time.DateOnly))
		}
		return "its certificate is not valid: " + strings.TrimPrefix(no.Error(), "x509: ")
	}
	if no, ok := errors.AsType[x509.HostnameError](err); ok {
		names := "no host"
		if no.Certificate != nil && len(no.Certificate.DNSNames) > 0 {
			names = strings.Join(no.Certificate.DNSNames[:min(3, len(no.Certificate.DNSNames))], ", ")
		}
		return fmt.Sprintf("its certificate is that of %s, not of %s: look at the host's name, or tell its owner", names, no.Host)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is signed by an unknown authority; to trust it, set SSL_CERT_FILE to the authority's file"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate cannot be verified: " + err.Error()
	}
	return ""
}
