package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/millrace/millrace"
)

// Names in the hidden folder.
const (
	hidden       = ".millrace"
	manifestName = hidden + "/export.jsonl"   // files of the last export
	journalName  = hidden + "/export.journal" // files of this export so far
	lockName     = hidden + "/export.lock"
	tempName     = hidden + "/export.new-" // with a number: a file without its final name
)

// format is the version of the manifest.
const format = 1

// record is a line of a manifest. The first line contains only the format.
type record struct {
	Format int    `json:"format,omitempty"`
	File   string `json:"file,omitempty"` // file name with slashes
	Sum    string `json:"sum,omitempty"`  // SHA-256 of the file in hex
}

// recover adds the journal of a killed export to the manifest, and reads the manifest.
func (o *output) recover() error {
	m, err := o.root.OpenFile(manifestName, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer m.Close()
	own := func(r record) { o.owned[keyOf(fold(r.File))] = true }
	complete, err := records(m, func(r record) error {
		own(r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", manifestName, err)
	}
	j, err := o.root.Open(journalName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer j.Close()
	// An interrupted recovery may have left part of a record. The journal still contains that
	// record.
	if err := m.Truncate(complete); err != nil {
		return err
	}
	if _, err := m.Seek(complete, io.SeekStart); err != nil {
		return err
	}
	w := bufio.NewWriter(m)
	if complete == 0 {
		if err := appendRecordTo(w, record{Format: format}); err != nil {
			return err
		}
	}
	_, err = records(j, func(r record) error {
		own(r)
		o.batch.Changed(r.File)
		return appendRecordTo(w, r)
	})
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = m.Sync()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", journalName, err)
	}
	return o.root.Remove(journalName)
}

// records calls f with each file of a manifest or journal, up to a damaged line, and returns the
// length of the valid lines. An interrupted write damages only the last line. In a journal, the
// file of that line has not been renamed yet. A damaged manifest is completed from the journal.
func records(r io.Reader, f func(record) error) (complete int64, err error) {
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return complete, nil
		} else if err != nil {
			return complete, err
		}
		var e record
		if json.Unmarshal(line, &e) != nil {
			return complete, nil //nolint:nilerr // see above
		}
		complete += int64(len(line))
		switch {
		case n == 1 && e.Format != format:
			return complete, fmt.Errorf("%w: the manifest comes from another version of millrace", millrace.ErrConflict)
		case e.File == "":
			continue
		}
		if err := f(e); err != nil {
			return complete, err
		}
	}
}

func appendRecordTo(w io.Writer, r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func (o *output) say(r record) error { return appendRecordTo(o.journalBuf, r) }
