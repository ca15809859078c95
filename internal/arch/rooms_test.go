package arch

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// draftFile matches the role of files that have what one draft of a protocol has of
// its own.
var draftFile = regexp.MustCompile(`^draft\d\d$`)

// checkRooms compares the files of every room with the plan, and the rooms
// with the one list of them.
func checkRooms(t *tree) []string {
	var roles, problems []string
	for _, r := range tableRows(t.text[page], "file", "role") {
		roles = append(roles, names(r[0])...)
	}
	if len(roles) == 0 {
		return []string{page + ": no plan of a room"}
	}
	var listed []string
	if all := t.packages["protocol/all"]; all != nil {
		for _, f := range all.files {
			for _, i := range f.imports {
				if !f.test {
					listed = append(listed, i.local)
				}
			}
		}
	}
	for _, p := range t.sorted() {
		if !isRoom(p.path) {
			continue
		}
		if !slices.Contains(listed, p.path) {
			problems = append(problems, fmt.Sprintf("protocol/all does not list %s", p.path))
		}
		found := map[string]bool{}
		for _, f := range p.files {
			base := path.Base(f.path)
			found[base] = true
			role, topic, _ := strings.Cut(strings.TrimSuffix(base, ".go"), "_")
			if draftFile.MatchString(role) {
				continue
			}
			if !f.test && (!slices.Contains(roles, role+".go") || topic == "" && strings.Contains(base, "_")) {
				problems = append(problems, fmt.Sprintf("%s: no role of the plan has this name", f.path))
			}
		}
		for _, r := range roles {
			if !found[r] {
				problems = append(problems, fmt.Sprintf("%s: no %s", p.path, r))
			}
		}
	}
	return problems
}
