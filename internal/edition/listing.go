package edition

import "time"

// Listed describes a large document or an artifact of an edition.
type Listed struct {
	Protocol string
	Path     string // relative to the endpoint base, starting with "/"
	Size     int64  // in bytes, without the codings that the server adds
	MinSize  int64  // in bytes, in gzip if that is smaller
	Modified time.Time
	Keyed    bool // requests with a key get another document
}

// Listing returns the large documents of the edition, followed by its artifacts.
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
