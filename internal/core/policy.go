package core

// Policy is who may use how much: every QOS, and the tree of projects with their members. It is read and replaced as a
// whole.
type Policy struct {
	Defaults PolicyDefaults `json:"defaults,omitzero"`
	QOS      []QOS          `json:"qos"`      // by name
	Projects []Project      `json:"projects"` // by name
}

// PolicyDefaults are settings of the config file that a reader of the policy wants to see; they are not changed with
// it.
type PolicyDefaults struct {
	Project ProjectName `json:"project,omitempty"` // of those who have no other
}

// PolicyDiff is what applying a policy changes.
type PolicyDiff struct {
	Changes []PolicyChange `json:"changes"`
	// Exceeded are limits below what already runs: nothing is applied then, unless it is forced.
	Exceeded []PolicyExcess `json:"exceeded,omitempty"`
	Applied  bool           `json:"applied"`
}

// PolicyChange is one entry that comes, changes or goes.
type PolicyChange struct {
	Op     string        `json:"op"`   // "add", "change", "remove"
	What   string        `json:"what"` // "qos high", "project physics", "member ann of physics"
	Fields []FieldChange `json:"fields,omitempty"`
}

// FieldChange is what becomes of one field; an empty text stands for one that is not set.
type FieldChange struct {
	Name string `json:"name"`
	Was  string `json:"was,omitempty"`
	Is   string `json:"is,omitempty"`
}

// PolicyExcess is something that has more than a limit allows.
type PolicyExcess struct {
	Path  string `json:"path"`  // "projects.physics"
	Who   string `json:"who"`   // "project physics", "ann in project physics", "job 12"
	Limit string `json:"limit"` // "grp_tres cpu"
	Max   int64  `json:"max"`
	Has   int64  `json:"has"`
}
