package fit

import "bireme.dev/bireme/internal/sched/ledger"

// markExclusive notes in what a job takes of a node that it keeps the rest from others.
func (req *Request) markExclusive(use *ledger.Resources) {
	switch {
	case req.Exclusive:
		use.Exclusive = -1
	case req.User != "":
		use.Exclusive, use.UserExclusive = -1, -1
	}
}
