package scp

// mediaMember reads a member of a video or an audio, as blockMember does.
func (p *parser) mediaMember(b *block, name []byte, bad *bool) (bit int) {
	m, video := b.Media, b.Type == videoBlock
	bit = blockOther
	if member := string(name); hasRule(member) {
		p.has("blocks/", member)
	}
	switch string(name) {
	case "name":
		m.Name, _ = p.str()
		return blockName
	case "url":
		*bad = !p.sources(m, video) || *bad
		return blockURL
	case "duration":
		s, ok := p.token()
		if ok && !isDuration(p.bytes(s)) {
			p.refuse(s.from, "Page Object Schema", "it is no duration in hours, minutes and seconds")
		}
		if ok {
			m.Duration = p.string(s)
		}
	case "icon":
		p.icon(m)
	case "summary":
		m.Summary, _ = p.str()
	case "chapters":
		p.chapters(m)
	case "transcript":
		m.Transcript, _ = p.str()
	default:
		switch {
		case video && string(name) == "width":
			m.Width = p.natural()
		case video && string(name) == "height":
			m.Height = p.natural()
		case video && string(name) == "captions":
			p.captions(m)
		case !video && string(name) == "attributedTo":
			m.AttributedTo = p.named()
		case !video && string(name) == "partOf":
			m.PartOf = p.named()
		default:
			p.value(4)
			bit = 0
		}
	}
	return bit
}

// hasRule reports whether the checker has a rule about a member of a video or an
// audio alone.
func hasRule(member string) bool {
	return member == "duration" || member == "icon" || member == "captions" || member == "chapters"
}

// sources reads where a video or an audio is: one URL, or several with their
// media types. It gives false if none of them is of http or https.
func (p *parser) sources(m *media, video bool) bool {
	m.URL, m.Sources = "", nil
	if p.peek() == '"' {
		var ok bool
		m.URL, ok = p.link("blocks/url")
		return ok
	}
	at := p.pos
	some, good := false, false
	whole := p.array(func() {
		some = true
		var s source
		valid := true
		ok := p.object("href mediaType", func(name string) int {
			switch name {
			case "href":
				s.Href, valid = p.link("blocks/url")
				return 1
			case "mediaType":
				s.MediaType, _ = p.str()
				return 2
			case "rel":
				if video {
					p.token()
					return 0
				}
			}
			p.value(7)
			return 0
		}, 3)
		switch {
		case !ok:
		case !valid:
			p.counts.dropped++
		default:
			good = true
			if p.keep {
				m.Sources = append(m.Sources, s)
			}
		}
	})
	if whole && !some {
		p.refuse(at, "Page Object Schema", "there is no URL")
	}
	return good || !some
}

// object reads an object whose members are read by a function, which gives bits;
// not ok: the page is refused, since it is no object or lacks some of them.
func (p *parser) object(what string, read func(name string) int, needs int) (ok bool) {
	if p.peek() != '{' {
		p.wrong("an object")
		return false
	}
	at := p.pos
	p.pos++
	seen := 0
	for name, more := p.member(true); more; name, more = p.member(false) {
		bit := read(string(name))
		if p.failed {
			return false
		}
		if seen&bit != 0 {
			p.refuse(at, "Page Object Schema", twice)
		}
		seen |= bit
	}
	if p.failed {
		return false
	}
	if seen&needs != needs {
		p.refuse(at, "Page Object Schema", "it needs "+what)
		return false
	}
	return true
}

func (p *parser) icon(m *media) {
	p.object("", func(name string) int {
		switch name {
		case "type":
			if s, ok := p.token(); ok && string(p.bytes(s)) != "Image" {
				p.refuse(s.from, "Page Object Schema", `want "Image"`)
			}
			return 1
		case "url":
			var ok bool
			if m.Icon, ok = p.link("blocks/url"); !ok {
				p.counts.dropped++
			}
			return 2
		}
		p.value(5)
		return 0
	}, 0)
}

func (p *parser) captions(m *media) {
	m.Captions = nil
	p.array(func() {
		var c caption
		valid := true
		ok := p.object("language url label", func(name string) int {
			switch name {
			case "language":
				c.Language, _ = p.str()
				return 1
			case "url":
				c.URL, valid = p.link("blocks/url")
				return 2
			case "label":
				c.Label, _ = p.str()
				return 4
			}
			p.value(6)
			return 0
		}, 7)
		switch {
		case !ok:
		case !valid:
			p.counts.dropped++
		case p.keep:
			m.Captions = append(m.Captions, c)
		}
	})
}

func (p *parser) chapters(m *media) {
	m.Chapters = nil
	p.array(func() {
		var c chapter
		ok := p.object("time title", func(name string) int {
			switch name {
			case "time":
				c.Time = p.natural()
				return 1
			case "title":
				c.Title, _ = p.str()
				return 2
			}
			p.value(6)
			return 0
		}, 3)
		if ok && p.keep {
			m.Chapters = append(m.Chapters, c)
		}
	})
}

// named reads a name, or the name of an object such as a Person, which the text
// of the specification allows beside its schema.
func (p *parser) named() (s string) {
	if p.peek() != '{' {
		s, _ = p.str()
		return s
	}
	p.object("name", func(name string) int {
		if name == "name" {
			s, _ = p.str()
			return 1
		}
		p.value(5)
		return 0
	}, 1)
	return s
}
