package agent

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
)

func TestByHost(t *testing.T) {
	t.Parallel()
	got := byHost([]string{"http://a.example/", "http://b.example/x", "https://a.example/y", "http://A.example/z", "http://b.example:81/"})
	if want := [][]int{{0, 2, 3}, {1}, {4}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMain(m *testing.M) { testkit.Main(m) }
