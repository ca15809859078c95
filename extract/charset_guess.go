package extract

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// candidate is a character set that a page may use without declaring it. usual contains the
// characters that make up half of the non-ASCII part of a typical text.
type candidate struct {
	encoding encoding.Encoding
	usual    string
	kana     bool // all kana also count as usual
	hangul   bool // all Hangul syllables also count as usual
}

func candidates() []candidate {
	return []candidate{
		{encoding: japanese.ShiftJIS, usual: "、。・ー日人年大本中", kana: true},
		{encoding: japanese.EUCJP, usual: "、。・ー日人年大本中", kana: true},
		{encoding: simplifiedchinese.GB18030, usual: "，。、：的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运"},
		{encoding: traditionalchinese.Big5, usual: "，。、：的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活爾更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直德資命山金指克許統區保至隊形社便空決治展馬科司五基眼書非則聽白卻界達光放強即像難且權思王象完設式色路記南品住告類求據程北邊死張該交規萬取拉格望覺術領共確傳師觀清今切院讓識候帶導爭運"},
		{encoding: korean.EUCKR, hangul: true},
		{encoding: charmap.Windows1251, usual: "оеаинтсрвлкмдпу"},
		{encoding: charmap.KOI8R, usual: "оеаинтсрвлкмдпу"},
		{encoding: charmap.Windows1253, usual: "αοιετσνηυρπκμλάίόέ"},
		{encoding: charmap.Windows1255, usual: "יוהלאתרבמנשדקע"},
		{encoding: charmap.Windows1256, usual: "ايلمونتربةعدسفهكقأ"},
		{encoding: charmap.Windows874, usual: "านรอกเงมยลวดทสตะ่้ิีปบคหแัไจพชขใโ"},
	}
}

// latin returns the character sets for letters that occur among ASCII letters. Their usual
// characters omit those that have the same code in both sets.
func latin() []candidate {
	return []candidate{
		{encoding: charmap.Windows1252, usual: "àâæãåçèêëìîïñòôõøùûœ¿¡«»"},
		{encoding: charmap.Windows1250, usual: "ąęłśżźćńěščřžůďťňăşţőű"},
	}
}

// guessCharset detects a document's character set from its text. It chooses the set in which the
// largest share of the text consists of usual characters, or windows-1252 if all shares are small.
func guessCharset(data []byte) encoding.Encoding {
	sample := highRuns(data)
	high, alone := 0, 0 // bytes above ASCII, and those of them without a neighbor above ASCII
	for i, c := range sample {
		if c >= utf8.RuneSelf {
			high++
			if (i == 0 || sample[i-1] < utf8.RuneSelf) && (i+1 == len(sample) || sample[i+1] < utf8.RuneSelf) {
				alone++
			}
		}
	}
	sets := candidates()
	if alone*2 > high {
		sets = latin()
	}
	best, most := encoding.Encoding(charmap.Windows1252), 0.0
	for _, c := range sets {
		text, err := c.encoding.NewDecoder().Bytes(sample)
		if err != nil {
			continue
		}
		all, usual := 0, 0
		for _, r := range string(text) {
			switch {
			case r < utf8.RuneSelf, r == '\u00a0':
				continue
			case r == utf8.RuneError:
				all += 10 // in the right character set, this occurs only where the text is cut
			case c.kana && r >= 0x3041 && r <= 0x30FF, c.hangul && r >= 0xAC00 && r <= 0xD7A3, strings.ContainsRune(c.usual, r):
				usual++
			case c.kana && r >= 0x4E00 && r <= 0x9FFF:
				continue // Japanese may use any ideograph, so it is no evidence for or against
			}
			all++
		}
		// A later set must be clearly better, because sets share characters.
		if share := float64(usual) / float64(max(all, 1)); share > most+.02 {
			best, most = c.encoding, share
		}
	}
	if most < .3 {
		return charmap.Windows1252
	}
	return best
}

// highRuns returns runs of a document, each from a non-ASCII byte to the next tag or line end, up to
// about 20,000 bytes in total.
func highRuns(data []byte) []byte {
	var out []byte
	for len(data) > 0 && len(out) < 20_000 {
		i := bytes.IndexFunc(data, func(r rune) bool { return r >= utf8.RuneSelf })
		if i < 0 {
			break
		}
		// The second byte of a multi-byte character may be ASCII, but never "<", ">" or a line end.
		end := i
		for end < len(data) && end-i < 2000 && data[end] != '<' && data[end] != '>' && data[end] != '\n' {
			end++
		}
		out = append(append(out, data[i:end]...), '\n')
		data = data[end:]
	}
	return out
}
