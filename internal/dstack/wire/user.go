package wire

// Roles of users across the server.
const (
	GlobalAdmin = "admin"
	GlobalUser  = "user"
)

// User is an account.
type User struct {
	ID           string          `json:"id"`
	Username     string          `json:"username"`
	CreatedAt    string          `json:"created_at"`
	GlobalRole   string          `json:"global_role"`
	Email        *string         `json:"email"`
	Active       bool            `json:"active"`
	Permissions  UserPermissions `json:"permissions"`
	SSHPublicKey *string         `json:"ssh_public_key"`
}

// UserPermissions is what a user may do beside the work in projects.
type UserPermissions struct {
	CanCreateProjects bool `json:"can_create_projects"`
}

// UserWithCreds is a user with what only its owner and administrators get.
type UserWithCreds struct {
	User
	Creds         UserCreds `json:"creds"`
	SSHPrivateKey *string   `json:"ssh_private_key"`
}

// UserCreds is the token that a user calls with.
type UserCreds struct {
	Token string `json:"token"`
}

// Users is a list with the count of all that match.
type Users struct {
	TotalCount *int   `json:"total_count"`
	Users      []User `json:"users"`
}

// PublicKey is a key with which a user logs in, beside the one that the server made.
type PublicKey struct {
	ID          string `json:"id"`
	AddedAt     string `json:"added_at"`
	Name        string `json:"name"`
	Type        string `json:"type"`
	Fingerprint string `json:"fingerprint"`
}
