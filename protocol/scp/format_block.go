package scp

import (
	"bytes"
	"slices"
	"strconv"
)

// Members of a block.
const (
	blockText = 1 << iota // also alt and code
	blockURL
	blockLevel
	blockOrdered
	blockItems // also rows
	blockName
	blockTyped
	blockOther // from here on those that are optional
)

// needs gives the members that a type requires.
func (t blockType) needs() int {
	switch t {
	case textBlock, codeBlock, quoteBlock:
		return blockText
	case headingBlock:
		return blockText | blockLevel
	case linkBlock, imageBlock:
		return blockText | blockURL
	case listBlock:
		return blockOrdered | blockItems
	case tableBlock:
		return blockItems
	case videoBlock, audioBlock:
		return blockName | blockURL
	}
	return 0
}

// block reads one content block. What its members mean depends on its type,
// which nearly always comes first; else the block is gone through for it.
func (p *parser) block() {
	p.within = "type"
	p.has("blocks/", "type")
	if p.peek() != '{' {
		p.wrong("an object")
		return
	}
	at := p.pos
	p.pos++
	var t blockType
	name, more := p.member(true)
	first := more && string(name) == "type"
	if first {
		t = p.blockType()
		name, more = p.member(false)
	} else if !p.failed {
		t, name, more = p.findType(at, name, more)
	}
	if p.failed {
		return
	}
	if t.needs() != 0 {
		p.within = t
		p.has("blocks/", string(t))
	}
	b := block{Type: t}
	if t == videoBlock || t == audioBlock {
		b.Media = &p.media
		*b.Media = media{}
		if p.keep {
			b.Media = new(media)
		}
	}
	seen, bad := 0, false
	if first {
		seen = blockTyped
	}
	for ; more; name, more = p.member(false) {
		from, bit := p.pos, blockTyped
		if string(name) == "type" {
			p.value(4) // it has been read
		} else {
			bit = p.blockMember(&b, name, &bad)
		}
		if p.failed {
			return
		}
		if seen&bit != 0 && bit != blockOther {
			p.refuse(from, "Page Object Schema", twice)
		}
		seen |= bit
	}
	switch {
	case p.failed:
	case t == "":
		p.refuse(at, "Validation", "the block has no type")
	case t == unknownBlock:
		p.counts.unknown++
		p.odd(at, "blocks/type", "Page Object Schema", "it is none of the content block types")
	case seen&t.needs() != t.needs():
		p.refuse(at, "Page Object Schema", "the "+string(t)+" block lacks a member")
	case bad:
		p.counts.dropped++
	case p.keep:
		p.page.Content = append(p.page.Content, b)
	}
}

// unknownBlock is any type that the specification does not have.
const unknownBlock blockType = "?"

func (p *parser) blockType() blockType {
	s, ok := p.token()
	if !ok {
		return ""
	}
	switch t := p.bytes(s); string(t) {
	case "text":
		return textBlock
	case "heading":
		return headingBlock
	case "link":
		return linkBlock
	case "image":
		return imageBlock
	case "list":
		return listBlock
	case "code":
		return codeBlock
	case "table":
		return tableBlock
	case "quote":
		return quoteBlock
	case "video":
		return videoBlock
	case "audio":
		return audioBlock
	}
	return unknownBlock
}

// findType finds the type of a block whose first member has another name, and
// goes back to that member.
func (p *parser) findType(at int, first []byte, any bool) (t blockType, name []byte, more bool) {
	if !any {
		return "", nil, false
	}
	for name, more = first, true; more; name, more = p.member(false) {
		if string(name) == "type" {
			t = p.blockType()
		} else {
			p.value(4)
		}
		if p.failed {
			return "", nil, false
		}
	}
	if p.failed {
		return "", nil, false
	}
	p.pos = at + 1
	name, more = p.member(true)
	return t, name, more
}

// blockMember reads a member of a block, and gives its bit, 0 for one that the
// type does not have. bad becomes true for a URL that is none.
func (p *parser) blockMember(b *block, name []byte, bad *bool) (bit int) {
	switch b.Type {
	case textBlock, headingBlock, linkBlock, quoteBlock:
		if string(name) == "text" {
			b.Text, _ = p.str()
			return blockText
		}
	case videoBlock, audioBlock:
		return p.mediaMember(b, name, bad)
	}
	switch string(name) {
	case "url":
		if b.Type == linkBlock || b.Type == imageBlock {
			var ok bool
			b.URL, ok = p.link("blocks/url")
			*bad = *bad || !ok
			return blockURL
		}
	case "level":
		if b.Type == headingBlock {
			p.has("blocks/heading-level", "")
			p.peek()
			at := p.pos
			n, ok := p.whole()
			if b.Level = min(max(n, 1), 6); ok && b.Level != n {
				p.counts.clamped++
				p.odd(at, "blocks/heading-level", "Page Object Schema", "a level is 1 to 6")
			}
			return blockLevel
		}
	case "rel":
		if b.Type == linkBlock {
			b.Rel = p.strings()
			return blockOther
		}
	case "alt":
		if b.Type == imageBlock {
			b.Text, _ = p.str()
			return blockText
		}
	case "ordered":
		if b.Type == listBlock {
			b.Ordered = p.bool()
			return blockOrdered
		}
	case "items":
		if b.Type == listBlock {
			b.Items = p.strings()
			return blockItems
		}
	case "language":
		if b.Type == codeBlock {
			b.Language, _ = p.str()
			return blockOther
		}
	case "code":
		if b.Type == codeBlock {
			b.Text, _ = p.str()
			return blockText
		}
	case "rows":
		if b.Type == tableBlock {
			p.rows(b)
			return blockItems
		}
	case "citation":
		if b.Type == quoteBlock {
			b.Citation, _ = p.str()
			return blockOther
		}
	}
	p.value(4)
	return 0
}

// link reads the URL of something in a page; not ok: it is none of http or https.
// A rule wants it to be one as it stands.
func (p *parser) link(rule string) (u string, ok bool) {
	p.has(rule, "")
	s, ok := p.token()
	if !ok {
		return "", true // the page is refused
	}
	raw := p.bytes(s)
	if isURI(raw) && isWeb(raw) {
		return p.string(s), true
	}
	p.odd(s.from, rule, "Page Object Schema", "it is no URL of http or https")
	u = webURL(string(raw))
	return u, u != ""
}

func (p *parser) bool() bool {
	switch p.peek() {
	case 't':
		return p.literal("true")
	case 'f':
		p.literal("false")
	default:
		p.wrong("true or false")
	}
	return false
}

// whole reads a whole number; what is beyond maxInt either way becomes that. Not
// ok: the page is refused.
func (p *parser) whole() (n int, ok bool) {
	c := p.peek()
	if c != '-' && (c < '0' || c > '9') {
		p.wrong("a whole number")
		return 0, false
	}
	at := p.pos
	b, ok := p.number()
	if !ok {
		return 0, false
	}
	if n, err := strconv.Atoi(string(b)); err == nil {
		return min(max(n, -maxInt), maxInt), true
	}
	if !isWhole(b) {
		p.refuse(at, "Page Object Schema", "want a whole number")
		return 0, false
	}
	f, _ := strconv.ParseFloat(string(b), 64) // out of range, it is infinite
	return int(min(max(f, -maxInt), maxInt)), true
}

// isWhole reports whether a JSON number has no fraction: "1.0" and "10e-1" are
// whole.
func isWhole(b []byte) bool {
	mantissa, exp, _ := bytes.Cut(bytes.ToLower(bytes.TrimPrefix(b, []byte("-"))), []byte("e"))
	digits, fraction, _ := bytes.Cut(mantissa, []byte("."))
	all := slices.Concat(digits, fraction)
	zeros := len(all) - len(bytes.TrimRight(all, "0"))
	if zeros == len(all) {
		return true // zero
	}
	e, err := strconv.Atoi(string(exp))
	if len(exp) > 0 && err != nil { // an exponent that is out of all ranges
		return exp[0] != '-'
	}
	return len(fraction)-e <= zeros
}

// natural reads a whole number that is not negative.
func (p *parser) natural() int {
	p.peek()
	at := p.pos
	n, _ := p.whole()
	if n < 0 {
		p.refuse(at, "Page Object Schema", "want a number that is not negative")
	}
	return max(n, 0)
}

// strings reads an array of strings.
func (p *parser) strings() []string {
	p.strs = p.strs[:0]
	if !p.array(func() {
		s, ok := p.str()
		if p.values++; p.values >= everyValues && p.late() {
			return
		}
		if ok && p.keep {
			p.strs = append(p.strs, s)
		}
	}) {
		return nil
	}
	return slices.Clone(p.strs)
}

// rows reads the rows of a table.
func (p *parser) rows(b *block) {
	p.array(func() {
		if row := p.strings(); p.keep && !p.failed {
			b.Rows = append(b.Rows, row)
		}
	})
}
