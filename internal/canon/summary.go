package canon

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var mail = regexp.MustCompile(`[^\s@<>()]+@[^\s@<>()]+\.\pL{2,}`)

// HasEmail reports whether a text contains an e-mail address.
func HasEmail(text string) bool { return strings.Contains(text, "@") && mail.MatchString(text) }

// prose is the length in characters above which a text without a sentence end is not a byline,
// a date or a postal address.
const prose = 100

// Summary returns the beginning of a page on one line, from its texts in document order, up to
// limits of sentences and characters. It skips texts with an e-mail address. It uses short
// texts without a sentence end, such as bylines and addresses, only if there is no other text.
func Summary(texts iter.Seq[string], sentences, characters int) string {
	for _, any := range []bool{false, true} {
		var b strings.Builder
		for text := range texts {
			text = strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), 16*characters)], ""))
			if text == "" || HasEmail(text) || !any && !isProse(text) {
				continue
			}
			b.WriteString(text + " ")
			if utf8.RuneCountInString(b.String()) > prose {
				break
			}
		}
		if b.Len() > 0 {
			return Sentences(b.String(), sentences, characters)
		}
	}
	return ""
}

func isProse(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, `"')]}”’»›」』）`))
	return strings.ContainsRune(".!?…。！？।؟:：", r) || utf8.RuneCountInString(text) > prose
}

// Sentences returns the first sentences of a text on one line, as many as fit. If the
// first does not fit, it returns the first words and "…". It is idempotent.
func Sentences(text string, sentences, characters int) string {
	text = strings.Join(strings.Fields(text), " ")
	end, space, size, found := 0, 0, 0, 0
	for i, r := range text {
		if size++; size > characters {
			break
		}
		next := i + utf8.RuneLen(r)
		if next == len(text) {
			return text
		}
		if size < characters && r == ' ' || size == characters && space == 0 {
			space = i
		}
		if endsSentence(text[:next], r, text[next:]) {
			end = next
			if found++; found == sentences {
				break
			}
		}
	}
	if end > 0 || text == "" {
		return text[:end]
	}
	return text[:space] + "…"
}

// endsSentence reports whether a sentence ends with the last character of
// before, which is r.
func endsSentence(before string, r rune, after string) bool {
	switch r {
	case '。', '！', '？', '।':
		return true
	case '!', '?', '…', '؟':
		return strings.HasPrefix(after, " ")
	case '.':
	default:
		return false
	}
	rest, ok := strings.CutPrefix(after, " ")
	if next, _ := utf8.DecodeRuneInString(rest); !ok || unicode.IsLower(next) {
		return false
	}
	// A word as short as an initial is an abbreviation or a list number.
	word := strings.TrimSuffix(before, ".")
	word = word[strings.LastIndexAny(word, " .(")+1:]
	return utf8.RuneCountInString(word) > 2
}
