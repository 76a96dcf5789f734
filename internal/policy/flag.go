package policy

import (
	"fmt"
	"strings"
)

// Flag changes how priorities are worked out, in Slurm's words.
type Flag uint16

// The flags.
const (
	AccrueAlways        Flag = 1 << iota // age counts from submission
	CalculateRunning                     // running jobs keep getting priorities
	DepthOblivious                       // fair-share that does not punish deep trees
	NoFairTree                           // classic fair-share
	IncrOnly                             // a priority never falls
	MaxTRES                              // billing takes the dearest resource of nodes
	MaxTRESGres                          // and adds all gres
	NoNormalAssoc                        // factors as they are, not as part of the highest
	NoNormalPart                         //
	NoNormalQOS                          //
	NoNormalTRES                         //
	SmallRelativeToTime                  // size is taken by the minute of the time limit

	NoNormalAll = NoNormalAssoc | NoNormalPart | NoNormalQOS | NoNormalTRES
)

var flagNames = []struct {
	name string
	flag Flag
}{
	{"ACCRUE_ALWAYS", AccrueAlways},
	{"CALCULATE_RUNNING", CalculateRunning},
	{"DEPTH_OBLIVIOUS", DepthOblivious},
	{"NO_FAIR_TREE", NoFairTree},
	{"INCR_ONLY", IncrOnly},
	{"MAX_TRES", MaxTRES},
	{"MAX_TRES_GRES", MaxTRESGres},
	{"NO_NORMAL_ALL", NoNormalAll},
	{"NO_NORMAL_ASSOC", NoNormalAssoc},
	{"NO_NORMAL_PART", NoNormalPart},
	{"NO_NORMAL_QOS", NoNormalQOS},
	{"NO_NORMAL_TRES", NoNormalTRES},
	{"SMALL_RELATIVE_TO_TIME", SmallRelativeToTime},
}

// ParseFlags reads flags separated by commas, in any case.
func ParseFlags(text string) (Flag, error) {
	var out Flag
next:
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		for _, f := range flagNames {
			if strings.EqualFold(part, f.name) {
				out |= f.flag
				continue next
			}
		}
		all := make([]string, len(flagNames))
		for i, f := range flagNames {
			all[i] = f.name
		}
		return 0, fmt.Errorf("%q is not a priority flag; expected %s", part, strings.Join(all, ", "))
	}
	return out, nil
}
