package jsonio

import "testing"

func TestEncode(t *testing.T) {
	if got := string(Encode(map[string]any{"a": "<b>&\n", "c": nil})); got != `{"a":"<b>&\n","c":null}` {
		t.Error(got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a function is encoded")
		}
	}()
	Encode(func() {})
}
