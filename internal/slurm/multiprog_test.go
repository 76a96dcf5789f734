package slurm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMultiProg(t *testing.T) {
	t.Parallel()
	list, err := MultiProg("mp.conf",
		[]byte("# who does what\n0 echo 'the master' %t\n2-3,7\tworker --at=%o of %t%%\n\n* rest\n"), []string{"more"})
	if err != nil {
		t.Fatal(err)
	}
	for rank, want := range map[int32]string{
		0: "echo|the master|0|more", 1: "rest|more", 2: "worker|--at=0|of|2%|more", 3: "worker|--at=1|of|3%|more",
		7: "worker|--at=2|of|7%|more",
	} {
		if diff := cmp.Diff(want, strings.Join(ProgramOf(list, rank), "|")); diff != "" {
			t.Errorf("task %d: %s", rank, diff)
		}
	}
	if argv := ProgramOf(list[:2], 5); argv != nil {
		t.Errorf("no line names task 5, and it runs %q", argv)
	}
	for text, want := range map[string]string{
		"0 echo\nx-2 echo\n": `Line 2 of configuration file mp.conf invalid: "x-2" is no rank; 0, 2-3, 1,7 and * are`,
		"0 echo 'open\n":     "Line 1 of configuration file mp.conf invalid: a ' is not closed",
		"3\n":                "Line 1 of configuration file mp.conf invalid: no program after ranks 3",
		"# nothing\n":        "Configuration file mp.conf has no program",
	} {
		if _, err := MultiProg("mp.conf", []byte(text), nil); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
