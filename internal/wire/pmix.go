package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// PMIx is what the tasks of a step are told of it by PMIx.
type PMIx struct {
	Namespace string     `json:"namespace"`
	Size      int        `json:"size"`  // tasks on all nodes
	Nodes     []PMIxNode `json:"nodes"` // all of the step
}

// PMIxNode is a node of a step with its tasks.
type PMIxNode struct {
	Name  core.NodeName `json:"name"`
	Ranks Ranks         `json:"ranks"`
}

// Ranks are numbers of tasks in an order that matters. In JSON they are short where they follow each other: "0-3,8".
type Ranks []int32

// maxRanks bounds what a few characters may stand for.
const maxRanks = 1 << 24

// MarshalJSON writes the short form.
func (r Ranks) MarshalJSON() ([]byte, error) { return json.Marshal(FormatRanges(r)) }

// FormatRanges writes numbers as a list of ranges, in their order: "0-3,8".
func FormatRanges(numbers []int32) string {
	var b []byte
	for i := 0; i < len(numbers); {
		k := i
		for k+1 < len(numbers) && numbers[k+1] == numbers[k]+1 {
			k++
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(numbers[i]), 10)
		if k > i {
			b = strconv.AppendInt(append(b, '-'), int64(numbers[k]), 10)
		}
		i = k + 1
	}
	return string(b)
}

// UnmarshalJSON reads the short form.
func (r *Ranks) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	*r = nil
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, span := strings.Cut(part, "-")
		if !span {
			to = from
		}
		first, err := strconv.ParseInt(from, 10, 32)
		if err != nil {
			return fmt.Errorf("ranks %q: %w", part, err)
		}
		last, err := strconv.ParseInt(to, 10, 32)
		if err != nil || last < first || last-first >= maxRanks-int64(len(*r)) {
			return fmt.Errorf("ranks %q: no range", part)
		}
		for n := first; n <= last; n++ {
			*r = append(*r, int32(n))
		}
	}
	return nil
}

// MeetAbort is the Op by which a node tells srun that a task ends the step, with N as its status.
const MeetAbort = "abort"
