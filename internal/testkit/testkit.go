// Package testkit contains code that the tests of several packages share: the tier of a test, its
// data, and a scratch folder. The folder is always removed, with the processes that a test leaves
// behind.
//
// There are two tiers. The fast tier is `go test ./...`; it needs only Go. Two environment
// variables add to it. MILLRACE_TEST_REAL=1 runs the tests that use programs from outside the
// module. MILLRACE_TEST_SOAK=1 runs everything at full length. With MILLRACE_TEST_REQUIRE=1, a
// missing program or folder fails a test instead of skipping it.
package testkit

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Real skips a test that needs programs from outside the module, unless
// MILLRACE_TEST_REAL is 1. Each program is a name to look up in PATH and
// /usr/sbin, an absolute path of a file, or several of these, separated by "|",
// one of which is enough. Real returns the path of the first program.
// The name of a test that calls it starts with TestReal.
func Real(tb testing.TB, programs ...string) string {
	tb.Helper()
	if os.Getenv("MILLRACE_TEST_REAL") != "1" {
		tb.Skipf("needs %s; MILLRACE_TEST_REAL=1 runs it", strings.Join(programs, ", "))
	}
	first := ""
	for i, p := range programs {
		path := find(p)
		if path == "" {
			Missing(tb, p)
		}
		if i == 0 {
			first = path
		}
	}
	return first
}

func find(program string) string {
	for name := range strings.SplitSeq(program, "|") {
		for _, at := range []string{name, "/usr/sbin/" + name} {
			if path, err := exec.LookPath(at); err == nil {
				return path
			}
		}
		if _, err := os.Stat(name); err == nil && strings.HasPrefix(name, "/") {
			return name
		}
	}
	return ""
}

// Missing skips a test because something is not installed or not named by the
// environment. It fails the test if MILLRACE_TEST_REQUIRE is 1.
func Missing(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("MILLRACE_TEST_REQUIRE") == "1" {
		tb.Fatalf("%s is missing", what)
	}
	tb.Skipf("%s is missing; MILLRACE_TEST_REQUIRE=1 makes that a failure", what)
}

// Data returns the folder or file that an environment variable names. CONTRIBUTING.md lists
// the variables. If the variable is empty, Data calls [Missing].
func Data(tb testing.TB, variable string) string {
	tb.Helper()
	path := os.Getenv(variable)
	if path == "" {
		Missing(tb, variable)
	}
	return path
}

// Soaking reports whether tests run at full length: MILLRACE_TEST_SOAK is 1.
func Soaking() bool { return os.Getenv("MILLRACE_TEST_SOAK") == "1" }

// Soak skips a test that only runs at full length.
func Soak(tb testing.TB) {
	tb.Helper()
	if !Soaking() {
		tb.Skip("takes long; MILLRACE_TEST_SOAK=1 runs it")
	}
}

// Size returns the size of a test: short with -short, fast in the fast tier, and soak at full
// length.
func Size(short, fast, soak int) int {
	switch {
	case Soaking():
		return soak
	case testing.Short():
		return short
	}
	return fast
}
