package extract

import (
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

func TestCharset(t *testing.T) {
	encode := func(e encoding.Encoding, s string) string {
		out, err := e.NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range []struct{ name, data, contentType, want string }{
		{"UTF-8", "<p>naïve – 日本", "", "naïve – 日本"},
		{"UTF-8, byte order mark", "\xEF\xBB\xBF<p>naïve", "text/html; charset=iso-8859-1", "naïve"},
		{"UTF-8 declared as Latin-1", `<meta charset=iso-8859-1><p>naïve – “x”`, "text/html; charset=windows-1252", "naïve – “x”"},
		{"UTF-8 with a bad byte", "<meta charset=utf-8><p>naïve \xFF schön größer", "", "naïve \uFFFD schön größer"},
		{"UTF-16 with a mark", encode(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "<p>naïve"), "", "naïve"},
		{"UTF-16 without a mark", encode(unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "<html><body><p>naive text here"), "", "naive text here"},
		{"Latin-1 without a word", "<p>na\xEFve \x93x\x94", "", "naïve “x”"},
		{"Latin-1 declared as UTF-8", "<meta charset=utf-8><p>na\xEFve sch\xF6n", "", "naïve schön"},
		{"by the header", encode(charmap.Windows1251, "<p>Привет"), "text/html; charset=windows-1251", "Привет"},
		{"by the document", encode(japanese.ShiftJIS, `<meta http-equiv=content-type content="text/html; charset=Shift_JIS"><p>日本語`), "text/html", "日本語"},
		{"the header wins", encode(simplifiedchinese.GBK, `<meta charset=big5><p>中文`), "text/html; charset=gbk", "中文"},
		{"ISO-2022-JP", encode(japanese.ISO2022JP, `<meta charset=iso-2022-jp><p>日本語`), "", "日本語"},
		{"unknown name", "<p>na\xEFve", "text/html; charset=klingon", "naïve"},
		{"broken header", "<p>naive", "text/html; ; charset", "naive"},
	} {
		res, err := HTML(t.Context(), []byte(c.data), "https://example.com/", &Options{ContentType: c.contentType})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := res.Page.Text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
