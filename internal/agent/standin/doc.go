// Package standin is a container's stand-in among the processes of its node (bireme-container).
//
// The keeper starts it in the place of a step's process and hands it the launch on descriptor 3 and the step's streams
// as its own. It has the engine make and start the container, whose first process (bireme-init) dials it, passes the
// streams on and says what to run:
//
//	keeper ─fork─► stand-in ──HTTP──► engine ──► container ─► bireme-init ─► the job
//	                   ▲    ══ streams, script, environment, signals ══▶│
//	                   └──────────────── how it ended ◀─────────────────┘
//
// While both live each is known to the other by the socket between them: a container that is killed is noticed at once,
// and one whose stand-in is killed ends. So the keeper's limits, signals, journal and recovery hold for containers
// without knowing them. What an exit status cannot say is in the stand-in's directory (End) for the agent, which also
// removes the container.
//
// Steps that join a running container (srun, ssh) have stand-ins too: those dial that of the batch step (join.go).
package standin
