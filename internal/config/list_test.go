package config

import (
	"errors"
	"testing"
)

func TestSetList(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, want string }{
		{"# A site.\nkeep: [.a]\nlisten: \":80\" # all\n", "# A site.\nkeep:\n  - \".b\"\n  - \".c\"\nlisten: \":80\" # all\n"},
		{"keep:\n  # why\n  - .b\n  - .x\n", "keep:\n  # why\n  - .b\n  - \".c\"\n"},
		{"listen: \":80\"\n", "listen: \":80\"\n\nkeep:\n  - \".b\"\n  - \".c\"\n"},
	} {
		got, err := setList([]byte(c.file), "keep", []string{".b", ".c"})
		if err != nil || string(got) != c.want {
			t.Errorf("%q:\n%q, %v, want\n%q", c.file, got, err, c.want)
		}
	}
	if _, err := setList([]byte("{keep: [.x], drop: [.y]}\n"), "keep", []string{".b"}); !errors.Is(err, errForm) {
		t.Error(err)
	}
}
