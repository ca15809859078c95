package tct

// draft02 is the form of draft-02 that the reader of draft-03 accepts. Its documents have no hash,
// and their ETag does not depend on their bytes. Version 2.1.0 of the plugin by the draft's author
// writes this form.
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
