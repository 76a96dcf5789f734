package core

import "cmp"

// User is a person or a program that acts. UnixName is who its processes run as; a user without one runs containers
// only.
type User struct {
	Name     UserName    `json:"name"`
	UnixName string      `json:"unix_name,omitempty"`
	UID      *uint32     `json:"uid,omitempty"` // learnt from the kernel at first use
	Role     Role        `json:"role"`          // across the whole cluster
	Default  ProjectName `json:"default_project,omitempty"`
	Created  Time        `json:"created,omitempty"`
	Disabled bool        `json:"disabled,omitempty"`
	Email    string      `json:"email,omitempty"`
	NoJWTs   Time        `json:"no_jwts,omitempty"` // JWTs made until then are good no more
	// Workload characterization keys that the user's jobs may name, sorted, and the one of those that name none.
	WCKeys       []string `json:"wckeys,omitempty"`
	DefaultWCKey string   `json:"default_wckey,omitempty"`
}

// Project is who pays and who may: a node in the account tree.
type Project struct {
	Name         ProjectName `json:"name"`
	ID           int64       `json:"id,omitempty"` // among projects and members; the state gives it
	Parent       ProjectName `json:"parent,omitempty"`
	Created      Time        `json:"created,omitempty"`
	Shares       int32       `json:"shares,omitempty"`  // of what its parent may use, beside its siblings; 0: one
	Members      []Member    `json:"members,omitempty"` // sorted by user
	Description  string      `json:"description,omitempty"`
	Organization string      `json:"organization,omitempty"`
	// of configurations that do not say one; empty: as the project above it has it
	Runtime string      `json:"runtime,omitempty"`
	Assoc   Association `json:"assoc,omitzero"`
	// Trusted: its containers may be privileged and mount any path of their nodes. Administrators set it.
	Trusted bool `json:"trusted,omitempty"`
	// What follows concerns neither work nor limits.
	Owner     UserName `json:"owner,omitempty"`          // who made it
	Public    bool     `json:"public,omitempty"`         // every user may look at it
	Templates string   `json:"templates_repo,omitempty"` // repository of templates that pages offer
}

// SharesParent in the place of shares says that one stands as one's parent does (Slurm's Fairshare=parent).
const SharesParent = 1<<31 - 1

// Member is a user's part in a project.
type Member struct {
	User   UserName `json:"user"`
	ID     int64    `json:"id,omitempty"` // among projects and members; the state gives it
	Role   Role     `json:"role"`
	Shares int32    `json:"shares,omitempty"` // of what the project may use; 0: one
	// Assoc is what holds for the user in this project alone.
	Assoc Association `json:"assoc,omitzero"`
}

// Member finds a user's part in the project; an empty one if there is none.
func (p *Project) Member(user UserName) Member {
	for i := range p.Members {
		if p.Members[i].User == user {
			return p.Members[i]
		}
	}
	return Member{User: user}
}

// RuntimeIn is what a project's configurations run in that do not say it themselves: what the nearest project says,
// from this one upwards; processes where none does.
func RuntimeIn(name ProjectName, project func(ProjectName) (*Project, bool)) string {
	const deepest = 100 // stores of old may hold circles
	for range deepest {
		p, ok := project(name)
		if !ok {
			break
		}
		if p.Runtime != "" {
			return p.Runtime
		}
		name = p.Parent
	}
	return RuntimeProcess
}

// Spent is what a user's jobs in a project have used up to a moment, decayed: for fair-share and for limits on minutes.
// It is written whenever what runs for them changes, so that the rest follows from At and the jobs that run.
type Spent struct {
	Project ProjectName `json:"project"`
	User    UserName    `json:"user"`
	At      Time        `json:"at"`
	Raw     float64     `json:"raw"`            // billing × seconds
	Wall    float64     `json:"wall,omitempty"` // seconds of jobs
	// Of the resources, and of all this what was used with each QOS; both by name.
	TRES []UnitSeconds `json:"tres,omitempty"`
	QOS  []SpentQOS    `json:"qos,omitempty"`
}

// SpentQOS is what was used with a QOS, which may decay otherwise than the whole.
type SpentQOS struct {
	Name QOSName       `json:"name"`
	Raw  float64       `json:"raw"`
	Wall float64       `json:"wall,omitempty"`
	TRES []UnitSeconds `json:"tres,omitempty"`
}

// UnitSeconds is so much of one trackable resource × seconds.
type UnitSeconds struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Role is what somebody may do; each includes those below it.
type Role string

// The roles. RoleAdmin on a user is the cluster's administrator, on a member the project's.
const (
	RoleNone    Role = ""
	RoleUser    Role = "user"
	RoleManager Role = "manager" // sees and steers all jobs of the project, adds members
	RoleAdmin   Role = "admin"
)

// Rank orders roles.
func (r Role) Rank() int {
	switch r {
	case RoleUser:
		return 1
	case RoleManager:
		return 2
	case RoleAdmin:
		return 3
	default:
		return 0
	}
}

// Token lets its bearer act as a user, or lets one node join. Only the SHA-256 of its secret is kept.
type Token struct {
	ID        string   `json:"id"`
	Hash      Hash     `json:"-"`
	Kind      string   `json:"kind"` // "user", "join"
	User      UserName `json:"user,omitempty"`
	Node      NodeName `json:"node,omitempty"` // join: the name it is good for; empty: any
	Roles     NodeRole `json:"roles,omitempty"`
	TrustRoot bool     `json:"trust_root,omitempty"`
	Note      string   `json:"note,omitempty"`
	Created   Time     `json:"created"`
	Expires   Time     `json:"expires,omitempty"`
	Used      Time     `json:"used,omitempty"` // join tokens work once
	Revoked   bool     `json:"revoked,omitempty"`

	// What follows is missing from tokens made before it was there: those have every right of their user and no end.
	Name     string      `json:"name,omitempty"`
	Scopes   []Scope     `json:"scopes,omitempty"`    // empty: every right of the user
	Project  ProjectName `json:"project,omitempty"`   // the only one it is good for, with ScopeProject
	Client   string      `json:"client,omitempty"`    // what it was made for: "dstack", or empty
	Parent   string      `json:"parent,omitempty"`    // id of the token that made it and bounds its life
	LastUsed Time        `json:"last_used,omitempty"` // written now and then, not at each use
	Ended    Time        `json:"ended,omitempty"`     // when it was revoked
	// Prior is the hash of the secret before the last rotation, which works until PriorUntil. Listings leave it out.
	Prior      Hash `json:"prior,omitzero"`
	PriorUntil Time `json:"prior_until,omitempty"`
	Rotated    Time `json:"rotated,omitempty"` // when it last got a new secret
}

// Identity is who makes a call, as established by a token or by the kernel.
type Identity struct {
	User      UserName
	UID       uint32
	Admin     bool
	Node      NodeName // the node the call came through, if any
	Untrusted bool     `json:",omitempty"` // by a node without --trust-root: what the call creates is no administrator's

	// What follows is set for callers with a token.
	Token   string      `json:",omitempty"` // its id
	Project ProjectName `json:",omitempty"` // the only project the token is good for; empty: all of the user's
	// the token lacks scope admin: neither an administrator's nor a manager's rights hold
	Plain bool `json:",omitempty"`
	Prior bool `json:",omitempty"` // it came by the secret that a rotation replaced
}

// Run is what a YAML configuration made: a name over one Job (or, for services, several).
type Run struct {
	Project ProjectName `json:"project"`
	Name    string      `json:"name"`
	ID      string      `json:"id"`
	User    UserName    `json:"user"`
	Jobs    []JobID     `json:"jobs"`
	Created Time        `json:"created"`
	Config  Hash        `json:"config,omitzero"` // blob: the YAML as applied, or with Wire dstack's run_spec in JSON
	Ended   Time        `json:"ended,omitempty"`
	Wire    bool        `json:"wire,omitempty"`    // a dstack client made it: Config is its run_spec, completed
	Updates int32       `json:"updates,omitempty"` // in place, while it was open
	Deleted Time        `json:"deleted,omitempty"` // somebody deleted it after its end; it stays in the history
	// Of an array: the first task that failed, and the first that was stopped. They decide how the run ends.
	FailedTask  JobID `json:"failed_task,omitempty"`
	StoppedTask JobID `json:"stopped_task,omitempty"`
	// Service is set of a run of replicas: Jobs are then those of its replicas, or the last one's.
	Service *Service `json:"service,omitempty"`
}

// DecidingJob is the job by which a run that has ended is judged.
func (r *Run) DecidingJob() JobID { return cmp.Or(r.FailedTask, r.StoppedTask, r.Jobs[0]) }
