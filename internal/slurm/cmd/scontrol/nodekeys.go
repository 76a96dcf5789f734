package scontrol

import (
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core/nodenotes"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// nodeKey takes a key that says what a node is; what is wrong with its value is returned, a line each.
func nodeKey(u *client.UpdateNode, p pair) (known bool, bad []string) {
	c := nodenotes.Change{}
	if u.Change != nil {
		c = *u.Change
	}
	switch p.key {
	case "weight":
		n, err := strconv.ParseUint(p.value, 10, 31)
		if err != nil {
			return true, []string{
				fmt.Sprintf("scontrol: error: Weight value (%s) is not a valid number", p.value), "No changes specified",
			}
		}
		weight := int32(n)
		c.Weight = &weight
	case "availablefeatures", "features":
		c.Available = features(p.value)
	case "activefeatures":
		c.Features = features(p.value)
	case "comment":
		c.Comment = &p.value
	case "extra":
		c.Extra = &p.value
	case "nodeaddr":
		c.Addr = &p.value
	case "nodehostname":
		c.Hostname = &p.value
	case "cpubind":
		bind := &client.PartitionChange{}
		if lines := bindKey(bind, &p); lines != nil {
			return true, []string{"scontrol: error: " + lines[0], "slurm_update error: No error"}
		}
		c.CPUBind = bind.CPUBind
	default:
		return false, nil
	}
	u.Change = &c
	return true, nil
}

func features(text string) *[]string {
	list := append([]string{}, cmd.SplitList(strings.TrimSpace(text))...)
	return &list
}
