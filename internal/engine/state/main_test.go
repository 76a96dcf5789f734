package state

import (
	"flag"
	"fmt"
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
	code := m.Run()
	if *recordTo != "" && code == 0 {
		if err := writeLogs(*recordTo); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
