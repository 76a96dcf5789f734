package sched

import (
	"flag"
	"os"
	"testing"
)

// TestMain draws the same worlds every time, so that what fails in one place fails everywhere. Who looks for more gives
// -rapid.seed and -rapid.checks.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.seed"); f != nil && f.Value.String() == "0" {
		_ = flag.Set("rapid.seed", "4242")
	}
	os.Exit(m.Run())
}
