package extract

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
)

// These pages declare no character set. Only their text allows a guess.
func TestCharsetGuessed(t *testing.T) {
	for text, e := range map[string]encoding.Encoding{
		"水車は水の流れで回る。粉をひくために使われた。":                                                                      japanese.ShiftJIS,
		"水車は川の水で回る。昔は米をつくために、どの村にもあった。":                                                                japanese.EUCJP,
		"水车是一种利用水流的机器，在中国已经有很长的历史。人们用它来磨面。":                                                            simplifiedchinese.GB18030,
		"水車是一種利用水流的機器，在很多地方已經有很長的歷史。人們用它來磨麵。":                                                          traditionalchinese.Big5,
		"물레방아는 흐르는 물의 힘으로 돌아가며 곡식을 찧는 데 쓰인다.":                                                          korean.EUCKR,
		"Мельница стоит у реки, и вода вращает её колесо уже двести лет.":                              charmap.Windows1251,
		"Мельница стоит у реки, и вода вращает большое колесо.":                                        charmap.KOI8R,
		"Ο μύλος βρίσκεται δίπλα στο ποτάμι και δουλεύει με το νερό.":                                  charmap.Windows1253,
		"הטחנה עומדת ליד הנהר והמים מסובבים את הגלגל":                                                  charmap.Windows1255,
		"تقع الطاحونة بجانب النهر وتدور العجلة بقوة الماء منذ سنوات طويلة":                             charmap.Windows1256,
		"โรงสีตั้งอยู่ริมแม่น้ำและใช้พลังน้ำหมุนกังหัน":                                                charmap.Windows874,
		"Młyn stoi nad rzeką, a woda obraca koło już dwieście lat, źle i dobrze":                       charmap.Windows1250,
		"Le moulin est situé près de la rivière ; l’eau fait tourner la roue à aubes, déjà très âgée.": charmap.Windows1252,
		"Die Mühle steht am Fluß, und das Wasser dreht ihr großes Rad – schon für Jahrhunderte.":       charmap.Windows1252,
		"El molino está junto al río; ¿quién lo diría? El agua mueve la rueda cada mañana.":            charmap.Windows1252,
	} {
		data, err := e.NewEncoder().String("<html><head><title>x</title></head><body><p>" + text + "</p></body></html>")
		if err != nil {
			t.Fatal(text, err)
		}
		res, err := HTML(t.Context(), []byte(data), "https://example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Page.Text(); got != text {
			t.Errorf("%v: %q, want %q", e, got, text)
		}
	}
}

func TestCharset(t *testing.T) {
	encode := func(e encoding.Encoding, s string) string {
		out, err := e.NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range []struct{ name, data, contentType, want string }{
		{"a zero that slipped in", "\n<html><p>na\x00ïve</p>", "", "naïve"},
		{"UTF-8", "<p>naïve – 日本", "", "naïve – 日本"},
		{"UTF-8, byte order mark", "\xEF\xBB\xBF<p>naïve", "text/html; charset=iso-8859-1", "naïve"},
		{"UTF-8 declared as Latin-1", `<meta charset=iso-8859-1><p>naïve – “x”`, "text/html; charset=windows-1252", "naïve – “x”"},
		{"UTF-8 with a bad byte", "<meta charset=utf-8><p>naïve \xFF schön größer", "", "naïve \uFFFD schön größer"},
		{"UTF-16 with a mark", encode(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "<p>naïve"), "", "naïve"},
		{"Latin-1 without a word", "<p>na\xEFve \x93x\x94", "", "naïve “x”"},
		{"Latin-1 declared as UTF-8", "<meta charset=utf-8><p>na\xEFve sch\xF6n", "", "naïve schön"},
		{"by the header", encode(charmap.Windows1251, "<p>Привет"), "text/html; charset=windows-1251", "Привет"},
		{"by the document", encode(japanese.ShiftJIS, `<meta http-equiv=content-type content="text/html; charset=Shift_JIS"><p>日本語`), "text/html", "日本語"},
		{"the header wins", encode(simplifiedchinese.GBK, `<meta charset=big5><p>中文`), "text/html; charset=gbk", "中文"},
		{"ISO-2022-JP", encode(japanese.ISO2022JP, `<meta charset=iso-2022-jp><p>日本語`), "", "日本語"},
		{"unknown name", "<p>na\xEFve", "text/html; charset=klingon", "naïve"},
		{"UTF-8 with a bad byte, not declared", strings.Repeat("<!-- -->", 200) + "<p>мельница \xD0 вода", "", "мельница \uFFFD вода"},
		{"Cyrillic declared as UTF-8", encode(charmap.Windows1251, "<meta charset=utf-8><p>Мельница стоит у реки"), "", "Мельница стоит у реки"},
		{"EUC-KR", encode(korean.EUCKR, `<meta charset=euc-kr><p>방앗간`), "", "방앗간"},
		{"GB18030, four bytes", encode(simplifiedchinese.GB18030, `<meta charset=gb18030><p>水車😀`), "", "水車😀"},
		{"UTF-16 that says so in ASCII", `<meta charset=utf-16><p>naïve`, "", "naïve"},
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

// TestUnread checks that PDF and Office documents are named, by their type or first bytes.
func TestUnread(t *testing.T) {
	for _, c := range []struct{ kind, data, want string }{
		{"text/html", "%PDF-1.7\n%\xE2\xE3", "pdf"},
		{"application/pdf", "", "pdf"},
		{"application/octet-stream", "PK\x03\x04\x14\x00\x06\x00\b\x00\x00\x00!\x00[Content_Types].xml", "office-document"},
		{"", "PK\x03\x04\x14\x00\x00\bmimetypeapplication/vnd.oasis.opendocument.text", "office-document"},
		{"", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "office-document"},
		{"application/vnd.ms-excel", "", "office-document"},
		{"", "PK\x03\x04\x14\x00\x00\x00picture.png", "binary"},
	} {
		_, err := HTML(t.Context(), []byte(c.data), "https://example.com/", &Options{ContentType: c.kind})
		if !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != c.want {
			t.Errorf("%s %q: %v, want %s", c.kind, c.data, err, c.want)
		}
	}
}

// TestCharsetBinary checks that binary data is rejected whatever type it declares.
func TestCharsetBinary(t *testing.T) {
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(i*i>>3) ^ byte(i*7)
	}
	for name, data := range map[string]string{
		"a program":           "\x7FELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x03\x00\x3E\x00\x01\x00\x00\x00" + strings.Repeat("\x40\x00\x00\x00<\x00h\x00", 100),
		"zeros in UTF-16":     strings.Repeat("a\x00", 200),
		"zeros further down":  "<p>" + strings.Repeat("x", 2000) + strings.Repeat("\x00", 500),
		"compressed":          strings.ReplaceAll(string(noise), "\x00", "\x01"),
		"UTF-16 with no tags": "h\x00i\x00 \x00<\x00 \x004\x00",
	} {
		res, err := HTML(t.Context(), []byte(data), "https://example.com/", nil)
		if !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: %v, %+v", name, err, res)
		} else if millrace.ErrorCode(err) != "binary" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A few such characters are harmless.
	res, err := HTML(t.Context(), []byte("<p>"+strings.Repeat("a mill by the river ", 20)+"\x01\x02\x0C\x1F end"), "https://example.com/", nil)
	if err != nil || !strings.Contains(res.Page.Text(), "a mill by the river") {
		t.Errorf("%v, %+v", err, res)
	}
}
