//go:build !linux

package folder

import "testing"

func makePipe(t *testing.T, name string) {
	t.Helper()
	t.Skip("named pipes are made on Linux only")
}
