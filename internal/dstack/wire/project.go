package wire

// Project is a project with its members.
type Project struct {
	ProjectID     string    `json:"project_id"`
	ProjectName   string    `json:"project_name"`
	Owner         User      `json:"owner"`
	CreatedAt     string    `json:"created_at"`
	Backends      []Backend `json:"backends"`
	Members       []Member  `json:"members"`
	IsPublic      bool      `json:"is_public"`
	TemplatesRepo *string   `json:"templates_repo"`
}

// Backend is a cloud of a project. Bireme has none of them: the list is empty.
type Backend struct {
	Name string `json:"name"`
}

// Member is a user's part in a project.
type Member struct {
	User        User              `json:"user"`
	ProjectRole string            `json:"project_role"`
	Permissions MemberPermissions `json:"permissions"`
}

// MemberPermissions is what a member may do beside running.
type MemberPermissions struct {
	CanManageSSHFleets bool `json:"can_manage_ssh_fleets"`
	CanManageSecrets   bool `json:"can_manage_secrets"`
}

// Projects is a list with the count of all that match.
type Projects struct {
	TotalCount *int      `json:"total_count"`
	Projects   []Project `json:"projects"`
}
