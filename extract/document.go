package extract

import (
	"bytes"
	"errors"
	"strings"

	"github.com/millrace/millrace"
)

// Errors for documents that are recognized but not read.
var (
	errPDF    = millrace.Coded("pdf", errors.New("the document is a PDF"))
	errOffice = millrace.Coded("office-document", errors.New("the document is an Office document"))
)

// Unsupported returns an error if a document is a PDF or an Office document, which are recognized
// but not read. It detects them by the first bytes. It uses the media type only if head is empty or
// is the start of a ZIP archive.
func Unsupported(mediaType string, head []byte) error {
	mediaType = strings.ToLower(mediaType)
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")), len(head) == 0 && strings.HasPrefix(mediaType, "application/pdf"):
		return errPDF
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		for _, part := range []string{"[Content_Types].xml", "word/", "xl/", "ppt/", "application/vnd.oasis.opendocument"} {
			if bytes.Contains(head[:min(len(head), 4096)], []byte(part)) {
				return errOffice
			}
		}
	case bytes.HasPrefix(head, []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")), bytes.HasPrefix(head, []byte(`{\rtf`)):
		return errOffice
	case len(head) > 0:
		return nil
	}
	for _, kind := range []string{"application/msword", "application/vnd.ms-", "application/vnd.openxmlformats-officedocument", "application/vnd.oasis.opendocument", "application/rtf", "text/rtf"} {
		if strings.HasPrefix(mediaType, kind) {
			return errOffice
		}
	}
	return nil
}
