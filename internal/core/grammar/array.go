package grammar

import (
	"errors"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core/taskset"
)

const wantArray = "indices and ranges such as 0-15, 1,3,5 or 1-7:2, with an optional %N for N at a time"

// Array is what --array asks for.
type Array struct {
	Tasks    taskset.Set
	Throttle int // most tasks running at once; 0 for no limit
}

// ParseArray reads 0-15, 1,3,5, 0,6,16-32, 1-7:2 and any of them with %N at the end.
func ParseArray(s string) (Array, error) {
	t := &text{what: "job array", want: wantArray, in: s}
	list, throttle, throttled := strings.Cut(s, "%")
	tasks, err := taskset.Parse(list)
	if err != nil {
		var te *taskset.Error
		if errors.As(err, &te) {
			return Array{}, t.fail(te.Pos, "%s", te.Msg)
		}
		return Array{}, t.fail(0, "%s", err.Error())
	}
	a := Array{Tasks: tasks}
	if !throttled {
		return a, nil
	}
	t.pos = len(list) + 1
	if throttle == "" {
		return Array{}, t.fail(t.pos, "expected a number after '%%'")
	}
	n, err := t.number(taskset.MaxIndex)
	if err != nil {
		return Array{}, err
	}
	if !t.end() {
		return Array{}, t.unexpected()
	}
	a.Throttle = int(n)
	return a, nil
}

func (a Array) String() string {
	return a.Tasks.String() + throttleText(a.Throttle)
}

// ArrayText is the room Slurm gives the indices of an array in a listing (SLURM_BITSTR_LEN).
const ArrayText = 64

// FormatArray writes pending tasks as squeue and scontrol of Slurm 22.05 do: runs as ranges, all
// else index by index, and first-last:step only for six or more evenly spaced indices that span
// more than ten. What does not fit into room bytes is cut and ends in "..."; room 0 cuts nothing.
func FormatArray(tasks taskset.Set, throttle, room int) string {
	return cut(listTasks(tasks, room), room) + throttleText(throttle)
}

func throttleText(throttle int) string {
	if throttle == 0 {
		return ""
	}
	return "%" + strconv.Itoa(throttle)
}

// cut keeps room for Slurm's terminating byte and for one it never uses.
func cut(s string, room int) string {
	if room < 8 || len(s) < room-2 {
		return s
	}
	return s[:room-4] + "..."
}

func listTasks(tasks taskset.Set, room int) string {
	if step := tasks.Step(); step > 1 && tasks.Len() >= 6 && tasks.Max()-tasks.Min() > 10 {
		return strconv.Itoa(tasks.Min()) + "-" + strconv.Itoa(tasks.Max()) + ":" + strconv.Itoa(step)
	}
	var b []byte
	first, last := -1, -1
	flush := func() {
		if first < 0 {
			return
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(first), 10)
		if last > first {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(last), 10)
		}
	}
	for _, r := range tasks.Ranges() {
		for i := r.First; i <= r.Last; i += r.Step {
			if room > 0 && len(b) > room {
				return string(b) // the rest is cut anyway
			}
			if int(i) != last+1 || first < 0 {
				flush()
				first = int(i)
			}
			last = int(i)
			if r.Step == 1 {
				last = int(r.Last)
				break
			}
		}
	}
	flush()
	return string(b)
}
