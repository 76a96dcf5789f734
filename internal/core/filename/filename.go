package filename

import (
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Names is what the % symbols of an output file's name stand for, as far as they are the same for all tasks of
// a step on a node.
type Names struct {
	Job       core.JobID    `json:"job,omitempty"`        // %j
	ArrayJob  core.JobID    `json:"array_job,omitempty"`  // %A; zero: not an array task, then %A is the job
	ArrayTask int64         `json:"array_task,omitempty"` // %a; read only with ArrayJob
	Step      string        `json:"step,omitempty"`       // %s: "batch", "0"
	Node      core.NodeName `json:"node,omitempty"`       // %N, short name
	NodeIndex int           `json:"node_index,omitempty"` // %n: position of the node in the job
	User      core.UserName `json:"user,omitempty"`       // %u
	JobName   string        `json:"job_name,omitempty"`   // %x
	Restarts  int           `json:"restarts,omitempty"`   // %r
	UniqueID  string        `json:"unique_id,omitempty"`  // %S
}

// noArrayTask is what %a gives outside of arrays, as Slurm 22.05 and 25.05.
const noArrayTask = 4294967294

// maxPad is the widest zero-padding Slurm grants; more is cut to it.
const maxPad = 10

// Expand replaces the symbols in the name of an output file, as Slurm 25.05: %% %A %a %b %J %j %N %n %r %S %s
// %t %u %x, with a width between % and the letter that zero-pads numbers. A leading backslash turns all of it off. What
// is no symbol stays as it is.
func Expand(pattern string, n Names, task int) string {
	if rest, off := strings.CutPrefix(pattern, `\`); off {
		return strings.TrimLeft(rest, `\`)
	}
	if strings.IndexByte(pattern, '%') < 0 {
		return pattern
	}
	var b strings.Builder
	b.Grow(len(pattern) + 32)
	for i := 0; i < len(pattern); {
		if pattern[i] != '%' {
			b.WriteByte(pattern[i])
			i++
			continue
		}
		end := i + 1
		width := 0
		for end < len(pattern) && '0' <= pattern[end] && pattern[end] <= '9' {
			width = min(width*10+int(pattern[end]-'0'), maxPad)
			end++
		}
		if end == len(pattern) || !n.symbol(&b, pattern[end], width, task) {
			b.WriteByte('%')
			i++
			continue
		}
		i = end + 1
	}
	return b.String()
}

// symbol writes what letter stands for and reports whether it stands for anything.
func (n Names) symbol(b *strings.Builder, letter byte, width, task int) bool {
	number := func(v int64) {
		s := strconv.FormatInt(v, 10)
		for range width - len(s) {
			b.WriteByte('0')
		}
		b.WriteString(s)
	}
	switch letter {
	case '%':
		b.WriteByte('%')
	case 'A':
		if n.ArrayJob != 0 {
			number(int64(n.ArrayJob))
		} else {
			number(int64(n.Job))
		}
	case 'a':
		number(n.arrayTask())
	case 'b':
		number(n.arrayTask() % 10)
	case 'J':
		// Only the job's number is padded: there is one width and the step may be a word.
		number(int64(n.Job))
		if n.Step != "" && n.Step != "batch" {
			b.WriteByte('.')
			b.WriteString(n.Step)
		}
	case 'j':
		number(int64(n.Job))
	case 'N':
		short, _, _ := strings.Cut(string(n.Node), ".")
		b.WriteString(short)
	case 'n':
		number(int64(n.NodeIndex))
	case 'r':
		number(int64(n.Restarts))
	case 'S':
		b.WriteString(n.UniqueID)
	case 's':
		if v, err := strconv.ParseInt(n.Step, 10, 64); err == nil {
			number(v)
		} else {
			b.WriteString(n.Step)
		}
	case 't':
		number(int64(task))
	case 'u':
		b.WriteString(string(n.User))
	case 'x':
		b.WriteString(n.JobName)
	default:
		return false
	}
	return true
}

func (n Names) arrayTask() int64 {
	if n.ArrayJob == 0 {
		return noArrayTask
	}
	return n.ArrayTask
}

// PerTask reports whether each task has a file of its own under this pattern.
func PerTask(pattern string) bool {
	if strings.HasPrefix(pattern, `\`) {
		return false
	}
	// Two ranks give two names exactly when the rank is in the name.
	return strings.IndexByte(pattern, '%') >= 0 &&
		Expand(pattern, Names{}, 0) != Expand(pattern, Names{}, 1)
}
