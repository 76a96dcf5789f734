package conf

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/slurm/conf/keys"
)

var rewriteManual = flag.Bool("rewrite", false, "write the page of slurm.conf's keys")

const manualPage = "../../../docs/manual/slurm-conf.md"

// TestManual: the manual has a row for every key of slurm.conf and of the files beside it, with what becomes of it.
//
//	go test ./internal/slurm/conf -run Manual -rewrite
func TestManual(t *testing.T) {
	t.Parallel()
	want := manualText()
	if *rewriteManual {
		if err := os.WriteFile(manualPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(manualPage)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the table of keys says (%v): run this test with -rewrite", manualPage, err)
	}
}

const manualHead = "# The keys of slurm.conf and the files beside it\n\n" +
	"`biremed server --slurm-conf FILE` reads a Slurm site's files as they are. This page is made from the table of " +
	"keys that the reader itself uses. A key\n*acts* when its value has an effect here. One that is *always* in force " +
	"describes how things are here, whatever the value. One that is *shown* is kept\nand shown by `scontrol show " +
	"config`, and does nothing, for the reason given. `biremed config check` lists such keys of a file line by line.\n" +
	"A key that Slurm does not have is refused with file and line.\n"

// manualText is the page.
func manualText() string {
	var b strings.Builder
	b.WriteString(manualHead)
	table := func(head string, list []keys.Key) {
		fmt.Fprintf(&b, "\n## %s\n\n| key | here | why, or how it is here |\n| --- | --- | --- |\n", head)
		for i := range list {
			if k := &list[i]; k.Why != "" || k.Effect == keys.Acts {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, k.Effect, strings.ReplaceAll(k.Why, "|", "\\|"))
			}
		}
	}
	table("slurm.conf", keys.All())
	for _, file := range []string{
		keys.NodeLine, keys.PartitionLine, keys.NodeSetLine, keys.DownLine, "gres.conf", "topology.conf", "cgroup.conf",
		"job_container.conf", "acct_gather.conf", "burst_buffer.conf",
	} {
		table(file, keys.Others()[file])
	}
	return b.String()
}
