// Package nodenotes is what administrators write of nodes beside their state.
package nodenotes

// Notes is what an administrator has written of a node.
type Notes struct {
	Comment string `json:"comment,omitempty"`
	Extra   string `json:"extra,omitempty"`
	CPUBind string `json:"cpu_bind,omitempty"` // of steps that do not say, in Slurm's words; shown only
	// Available are the features it could have; nil: those it has.
	Available []string `json:"available,omitempty"`
}

// Change is a change of what a node is and of what is written of it; what is nil stays.
type Change struct {
	Weight    *int32    `json:"weight,omitempty"`
	Available *[]string `json:"available_features,omitempty"`
	Features  *[]string `json:"features,omitempty"` // those it has, of those available
	Comment   *string   `json:"comment,omitempty"`
	Extra     *string   `json:"extra,omitempty"`
	CPUBind   *string   `json:"cpu_bind,omitempty"`
	Addr      *string   `json:"addr,omitempty"`
	Hostname  *string   `json:"hostname,omitempty"`
}
