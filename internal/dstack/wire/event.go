package wire

// Event is something that happened.
type Event struct {
	ID                 string        `json:"id"`
	Message            string        `json:"message"`
	RecordedAt         string        `json:"recorded_at"`
	ActorUserID        *string       `json:"actor_user_id"` // null: the system
	ActorUser          *string       `json:"actor_user"`
	IsActorUserDeleted *bool         `json:"is_actor_user_deleted"`
	Targets            []EventTarget `json:"targets"`
}

// EventTarget is a thing that an event is about.
type EventTarget struct {
	Type             string  `json:"type"`
	ProjectID        *string `json:"project_id"`
	ProjectName      *string `json:"project_name"`
	IsProjectDeleted *bool   `json:"is_project_deleted"`
	ID               string  `json:"id"`
	Name             string  `json:"name"`
}

// Types of targets.
const (
	TargetProject  = "project"
	TargetUser     = "user"
	TargetFleet    = "fleet"
	TargetInstance = "instance"
	TargetRun      = "run"
	TargetJob      = "job"
	TargetSecret   = "secret"
)
