package tct

// draft02 is what the reader of draft-03 accepts of draft-02, which version 2.1.0 of the
// plugin of the draft's author writes: documents without a hash, whose ETag does not depend on
// their bytes.
var draft02 = &draft{
	Number:      "02",
	Profile:     profileName,
	ListVersion: 2,
	Members: []member{
		{"canonical_url", requiredMember, docURL},
		{"title", requiredMember, docTitle},
		{"content", requiredMember, docContent},
		{"content_media_type", textMember, docType},
		{"language", textMember, docLanguage},
		{"published", timeMember, docPublished},
		{"modified", timeMember, docModified},
		{"excerpt", textMember, docDescription},
		{"author", personMember, docAuthor},
		{"structured_data", schemaMember, nil},
	},
}
