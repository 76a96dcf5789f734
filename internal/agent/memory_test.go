package agent

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// rssFile is how much of this process's files is mapped, in KiB.
func rssFile(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	n, err := strconv.Atoi(strings.Fields(rest + " x")[0])
	if err != nil {
		t.Skip("the kernel does not tell RssFile")
	}
	return n
}

// What the start of a program mapped is given back, and the program goes on.
func TestGiveBackUnmapsTheProgram(t *testing.T) { // not parallel: it counts what the whole process maps
	before := rssFile(t)
	GiveBack()
	if after := rssFile(t); after >= before {
		t.Errorf("%d KiB of files mapped before, %d after", before, after)
	}
}
