package scp

import "bytes"

// parsePage parses a line into p.page, which is valid until the next call. If an error is fatal to
// the file (p.fatal), it returns false. An error in p.skip only rejects the page.
func (p *parser) parsePage(line []byte) bool {
	p.reset(line, "Page Object Schema", "format/json-lines")
	p.page = page{Content: p.page.Content[:0]}
	if !p.open() {
		return false
	}
	at := p.pos - 1
	seen := pageObject.rest(p, &p.page, true, 0)
	if p.failed || !p.end() {
		return false
	}
	p.applies("page/required")
	missing := pageObject.missing(seen)
	switch {
	case missing == nil:
		return true
	case seen&pageObject.needs == 0 && seen>>pageObject.find([]byte("collection"), 0)&1 != 0:
		return p.fail(issue{at: at, rule: "format/pages", section: "Structure", reason: "second metadata line"})
	}
	return p.fail(issue{at: at, member: missing[0].name, rule: "page/required", section: "Error Handling", reason: missingReason})
}

const missingReason = "the member is required"

// content reads the blocks of the page. If keep is set, it stores the blocks of known types.
func (p *parser) content(*[]block) {
	p.peek()
	at, n, rule := p.pos, 0, p.rule
	p.applies("limits/blocks")
	if p.array(func() {
		if n++; n <= maxBlocks {
			p.readBlock()
			p.rule = rule
			return
		}
		if n == maxBlocks+1 {
			p.note(issue{at: p.pos, rule: "limits/blocks", section: sectionLimits, reason: "the page has too many blocks"})
		}
		p.value()
	}) && n == 0 {
		p.refuse(at, "the content is empty")
	}
}

// readBlock reads one content block. The type of the block defines its other members. The type is
// usually the first member; otherwise, readBlock searches the block for it.
func (p *parser) readBlock() {
	p.rule = "blocks/type"
	p.applies(p.rule)
	if p.peek() != '{' {
		p.wrong("an object")
		return
	}
	at := p.pos
	k, first := p.blockKind()
	if p.failed {
		return
	}
	if k == nil {
		p.refuse(at, "the block has no type")
		k = anyBlock
	} else if k != anyBlock {
		p.rule = k.rule
		p.applies(p.rule)
	} else {
		p.counts.unknown++
		p.warn(at, "blocks/type", "unknown content block type")
	}
	n := len(p.page.Content)
	p.page.Content = append(p.page.Content, block{Type: k.name})
	b := &p.page.Content[n]
	if k.name == videoBlock || k.name == audioBlock {
		b.Media = &p.media
		*b.Media = media{}
		if p.keep {
			b.Media = new(media)
		}
	}
	p.invalidURL = false
	seen := uint32(1)
	if first {
		seen = 0
	}
	seen = k.rest(p, b, first, seen)
	switch {
	case p.failed || k == anyBlock:
	case k.needs&^seen != 0:
		k.finish(p, at, seen)
	case p.invalidURL:
		p.counts.dropped++
	case p.keep:
		return
	}
	p.page.Content = p.page.Content[:n]
}

// blockKind returns the schema of a block, or nil if the block has no type. If first is set, it
// moves to the first member of the block; otherwise, it moves to the members after the type.
func (p *parser) blockKind() (k *blockKind, first bool) {
	for _, k := range blockKinds {
		if bytes.HasPrefix(p.data[p.pos:], k.start) {
			p.pos += len(k.start)
			return k, false
		}
	}
	p.pos++
	from := p.pos
	name, more := p.member(true)
	first = string(name) != "type"
	for ; more && !p.failed; name, more = p.member(false) {
		if string(name) != "type" {
			p.value()
		} else if s, ok := p.token(); ok {
			k = kindOf(p.bytes(s))
		}
		if !first {
			return k, false
		}
	}
	p.pos = from
	return k, true
}

// appendPage appends the line of a page and its line end.
func appendPage(dst []byte, w *page) []byte { return append(pageObject.write(dst, w), '\n') }
