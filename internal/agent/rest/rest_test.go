package rest

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
)

// programPages counts the pages of this process's read-only mappings of its own program that are in its page tables.
// RssFile of /proc/self/status would not do: where the program is in a tmpfs its pages are RssShmem.
func programPages(t *testing.T) int {
	t.Helper()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	total, ours := 0, false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		w := strings.Fields(lines.Text())
		switch {
		case len(w) > 0 && strings.Contains(w[0], "-"): // START-END PERMS OFFSET DEVICE INODE PATH
			ours = len(w) > 5 && w[5] == self && !strings.Contains(w[1], "w")
		case ours && len(w) > 1 && w[0] == "Rss:":
			kib, err := strconv.Atoi(w[1])
			if err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
			total += (kib << 10) / os.Getpagesize()
		}
	}
	return total
}

// What the start of a program mapped is given back, and the program continues.
func TestGiveBackUnmapsTheProgram(t *testing.T) { // not parallel: it counts what the whole process maps
	before := programPages(t)
	GiveBack()
	if after := programPages(t); after >= before {
		t.Errorf("%d pages of the program mapped before, %d after", before, after)
	}
}
