package powercut

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// traced are the system calls that strace records.
const traced = "openat,openat2,creat,dup,dup2,dup3,close,read,write,pwrite64,writev,pwritev,lseek,ftruncate,fallocate,fsync,fdatasync,syncfs,sync," +
	"rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,copy_file_range,sendfile,splice"

// kind is the kind of an event.
type kind int

const (
	create kind = iota
	write
	truncate
	rename
	remove
	makeFolder
	syncFile
	syncNames // sync of a folder: all changes of names so far
	syncAll
	finished // the writer has returned
)

// event is a system call that changes the disk or makes changes durable.
type event struct {
	kind     kind
	file     int
	path, to string
	offset   int
	data     []byte
}

// folder is used for a folder where a file has its number.
const folder = -1

// disk contains the files of a folder before the events, and the events.
type disk struct {
	root   string
	before map[string]int // numbers of the files, by path
	files  map[int][]byte // data before the events
	events []event

	now  map[string]int // numbers of the files by path, after the events so far
	size map[int]int
	open map[string]*handle // open files by descriptor
}

type handle struct {
	file, offset int
	append       bool
}

// newDisk reads the files of a folder.
func newDisk(t *testing.T, root string) *disk {
	t.Helper()
	d := &disk{root: root, before: make(map[string]int), files: make(map[int][]byte), now: make(map[string]int), size: make(map[int]int), open: make(map[string]*handle)}
	if err := fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			d.before[name], d.now[name] = folder, folder
			return err
		}
		n := len(d.files) + 1
		d.files[n], err = os.ReadFile(filepath.Join(root, name))
		d.before[name], d.now[name], d.size[n] = n, n, len(d.files[n])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return d
}

var (
	unfinished = regexp.MustCompile(`^(\d+) +(.*) <unfinished \.\.\.>$`)
	resumed    = regexp.MustCompile(`^(\d+) +<\.\.\. \w+ resumed>(.*)$`)
	call       = regexp.MustCompile(`^\d+ +(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?`)
	argument   = regexp.MustCompile(`"([^"]*)"|(\w+)<([^>]*)>|([^, ]+)`)
)

// parse appends the calls of a trace to the events.
func (d *disk) parse(trace string) error {
	begun := make(map[string]string)
	for text := range strings.Lines(trace) {
		text = strings.TrimSpace(text)
		if m := unfinished.FindStringSubmatch(text); m != nil {
			begun[m[1]] = m[1] + " " + m[2]
			continue
		}
		if m := resumed.FindStringSubmatch(text); m != nil {
			text = begun[m[1]] + m[2]
		}
		m := call.FindStringSubmatch(text)
		if m == nil || strings.HasPrefix(m[3], "-") {
			continue
		}
		if err := d.call(m[1], m[2], m[3], plain(m[4])); err != nil {
			return fmt.Errorf("%w: %.300s", err, text)
		}
	}
	return nil
}

// plain decodes a string in strace's output.
func plain(s string) string {
	text, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
	if err != nil {
		return s
	}
	return string(text)
}

// call appends a successful call to the events.
func (d *disk) call(name, args, result, opened string) error {
	var texts, paths []string // arguments, and the paths of those that are descriptors
	for _, m := range argument.FindAllStringSubmatch(args, -1) {
		switch {
		case m[2] != "":
			texts, paths = append(texts, m[2]), append(paths, plain(m[3]))
		case m[4] != "":
			texts, paths = append(texts, m[4]), append(paths, "")
		default:
			texts, paths = append(texts, plain(m[1])), append(paths, "")
		}
	}
	// at resolves a name in a folder. It returns its path below the root of the disk, or false if
	// it is elsewhere.
	at := func(dir, name string) (string, bool) {
		if !path.IsAbs(name) {
			name = path.Join(dir, name)
		}
		return d.below(name)
	}
	number := func(i int) int { n, _ := strconv.Atoi(texts[i]); return n }
	n, _ := strconv.Atoi(result)
	h := d.open[texts[0]]
	switch name {
	case "openat":
		delete(d.open, result)
		if p, ok := d.below(opened); ok {
			d.opened(p, result, texts[2])
		}
	case "close":
		delete(d.open, texts[0])
	case "read":
		if h != nil {
			h.offset += n
		}
	case "lseek":
		if h != nil {
			h.offset = n
		}
	case "write", "pwrite64":
		switch {
		case texts[0] == "1" && texts[1] == done:
			d.events = append(d.events, event{kind: finished})
		case h == nil:
		case name == "pwrite64":
			d.write(h.file, number(3), texts[1][:n])
		default:
			if h.append {
				h.offset = d.size[h.file]
			}
			d.write(h.file, h.offset, texts[1][:n])
			h.offset += n
		}
	case "ftruncate":
		if h != nil {
			d.events = append(d.events, event{kind: truncate, file: h.file, offset: number(1)})
			d.size[h.file] = number(1)
		}
	case "fsync", "fdatasync":
		switch p, ok := d.below(paths[0]); {
		case h == nil || !ok:
		case h.file == folder:
			d.events = append(d.events, event{kind: syncNames, path: p})
		default:
			d.events = append(d.events, event{kind: syncFile, file: h.file, path: p})
		}
	case "sync", "syncfs":
		d.events = append(d.events, event{kind: syncAll})
	case "rename", "renameat", "renameat2":
		if name == "rename" {
			texts, paths = []string{"", texts[0], "", texts[1]}, []string{"", "", "", ""}
		}
		p, ok := at(paths[0], texts[1])
		if q, in := at(paths[2], texts[3]); ok && in {
			d.events = append(d.events, event{kind: rename, path: p, to: q})
			d.now[q] = d.now[p]
			delete(d.now, p)
		}
	case "unlink", "rmdir", "unlinkat":
		p, ok := at("", texts[0])
		if name == "unlinkat" {
			p, ok = at(paths[0], texts[1])
		}
		if ok {
			d.events = append(d.events, event{kind: remove, path: p})
			delete(d.now, p)
		}
	case "mkdir", "mkdirat":
		p, ok := at("", texts[0])
		if name == "mkdirat" {
			p, ok = at(paths[0], texts[1])
		}
		if ok {
			d.events = append(d.events, event{kind: makeFolder, path: p})
			d.now[p] = folder
		}
	case "linkat":
		p, ok := at(paths[0], texts[1])
		if q, in := at(paths[2], texts[3]); ok && in {
			d.events = append(d.events, event{kind: create, path: q, file: d.now[p]})
			d.now[q] = d.now[p]
		}
	default:
		if h != nil {
			return fmt.Errorf("powercut cannot simulate the call %s", name)
		}
	}
	return nil
}

// opened registers a descriptor, and creates or truncates its file.
func (d *disk) opened(p, descriptor, flags string) {
	f, exists := d.now[p]
	switch {
	case !exists && strings.Contains(flags, "O_CREAT"):
		f = len(d.files) + 1
		d.files[f], d.now[p] = nil, f
		d.events = append(d.events, event{kind: create, path: p, file: f})
	case !exists: // an unlinked file
		return
	case strings.Contains(flags, "O_TRUNC"):
		d.events = append(d.events, event{kind: truncate, file: f})
		d.size[f] = 0
	}
	d.open[descriptor] = &handle{file: f, append: strings.Contains(flags, "O_APPEND")}
}

func (d *disk) write(file, offset int, data string) {
	d.events = append(d.events, event{kind: write, file: file, offset: offset, data: []byte(data)})
	d.size[file] = max(d.size[file], offset+len(data))
}
