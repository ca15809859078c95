package edition

import "time"

// Listed is a large document or a file of an edition.
type Listed struct {
	Protocol string
	Path     string // under the documents' base, starting with "/"
	Size     int64  // in bytes, of a document without coding
	MinSize  int64  // the smallest that can be asked for
	Modified time.Time
	Keyed    bool // who has a key gets another form
}

// Listing gives the large documents and the files of the edition, in the order in
// which the protocols made them.
func (ed *Edition) Listing() []Listed {
	m := ed.manifest
	out := make([]Listed, 0, len(m.Documents)+len(m.Artifacts))
	for i := range m.Documents {
		d := &m.Documents[i]
		size := d.Chunks.size()
		l := Listed{Protocol: d.Protocol, Path: d.Path, Size: size, MinSize: size, Modified: d.Modified, Keyed: d.Keyed != nil}
		if e := ed.large[keyAt(d.Path)]; e != nil {
			if r := e.reps[gzipCoding].Load(); r != nil {
				l.MinSize = min(size, r.size)
			}
		}
		out = append(out, l)
	}
	for i := range m.Artifacts {
		f := &m.Artifacts[i]
		out = append(out, Listed{Protocol: f.Protocol, Path: f.Path, Size: f.Size, MinSize: f.Size, Modified: f.Modified})
	}
	return out
}
