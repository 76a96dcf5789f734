// Package sched decides which pending jobs start now, on which nodes, and gives a reason for every job that waits. It
// is pure: no I/O, no clock, no goroutines. Times are core.Time (microseconds); alloc.Never stands for "no limit".
//
// # What goes in, what comes out
//
//	 Changes: jobs, nodes, advance          Planner                  Plan
//	 reservations, limits, usage     ┌────────────────────────┐      Starts     jobs to start now, with nodes
//	───────────── Apply ───────────► │ partitions: queues     │      Preempts   running jobs to preempt
//	                                 │ classes:    equal jobs │      Provision  nodes to create or power up
//	 now                             │ nodes:      free now   │      WakeAt     when time alone changes the plan
//	───────────── Pass ────────────► │ jobs:       free later │ ───► Reason     why a job waits; Expected: until when
//	                                 └────────────────────────┘
//
// [Planner.Apply] (planner.go) takes whole records. [Planner.Pass] (pass.go) returns a [Plan] (plan.go) and leaves the
// planner as it was: starts are booked while the pass runs and taken back at its end. The engine checks each start
// again and carries it out; what really happened comes back through Apply. The main law: after any sequence of Apply,
// Pass returns what a planner built from the same records would return. All that is kept between passes is a cache (one
// exception: package timetable).
//
// # The steps of a pass
//
//	Pass                     pass.go
//	├─ enqueueEligible       jobs whose begin time has passed enter their queues
//	├─ expireSwitchWaits     jobs that waited long enough for few switches take any nodes       switchwait.go
//	├─ applyAdvance          windows of advance reservations, and what they hold of nodes       advance.go
//	├─ walkQueues            starts jobs
//	│  ├─ runTimetable       instead of all below: core.RuleConservative on one node                 conservative.go
//	│  ├─ advanceQueues.walk jobs that run only in advance reservations of whole nodes          advance.go
//	│  └─ walkInOrder        the first job of all queues (comesBefore), until all are closed
//	│     ├─ tryStart        one job, or one array task after the other; over a limit: skipped
//	│     │  ├─ place        on free nodes, if that delays no reservation
//	│     │  │  ├─ refusals.isRefused  an equal job was refused, and too little came free since refusal.go
//	│     │  │  ├─ chooseNow       fit.Request.Choose: which nodes                              choose.go, package fit
//	│     │  │  ├─ refusals.record no placement: remember what was missing                      refusal.go
//	│     │  │  └─ start           book it in the ledger, append it to Plan.Starts
//	│     │  └─ preemptions.startFor  finds victims; starts on suspended jobs' CPUs, or
//	│     │                  reserves                                                           preempt.go, victim
//	│     ├─ queueWalk.handleBlocked  it did not start: THE BACKFILL RULE. The head gets        walk.go
//	│     │  └─ reserve      a reservation at its earliest start                                reserve.go, reserve
//	│     └─ queueWalk.next  next job; skips those known not to start. In long queues           walk.go
//	│        └─ nextByClass  the next class that could start, instead of the next job           classwalk.go
//	├─ finishLimits, explainLicenses, explainThrottled: what Plan.Reason needs                  limits.go, license.go
//	├─ provision             nodes to create or power up for jobs that still wait               provision.go
//	└─ undo                  the planner is as it was before
//
// A queue is ordered by queueEntry.Compare (queue.go): rank, priority, age, id. Its first job that cannot start is its
// head ([core.ReasonResources]; jobs behind it: [core.ReasonPriority]). With EASY the head gets a reservation: the
// earliest time at which it could start if all running jobs use their time limit, and its nodes from then on. A job
// behind it starts if that does not delay the head: it ends before, or fits into what the reservation leaves
// (ledger.NodeReservation.Leaves). [core.Rule] has the other rules. A job that could not start on idle nodes either
// (assess, class.go) is in no queue, one over a limit is skipped, one of a QOS with NoReserve gets no reservation.
//
// # Example
//
// Two nodes of 4 CPUs, rule EASY. At 10:00 job 1 has all of n1 until 11:00. Three jobs wait, in this order: job 2 asks
// for both nodes for 1 h, job 3 for 4 CPUs for 2 h, job 4 for 4 CPUs for 30 min.
//
//	      10:00   10:30    11:00           12:00
//	n1    |1111111111111111|222222222222222|3333333333333…
//	n2    |4444444|        |222222222222222|
//
// The pass at 10:00:
//
//  1. Job 2: place finds one free node and needs two. handleBlocked makes it the head. reserve goes through the ends of
//     running jobs: at 11:00 both nodes are free. Reservation 11:00 to 12:00 on n1 and n2; it leaves nothing there.
//  2. Job 3: n2 is free, but the job would end at 12:00, and from 11:00 on n2 has nothing left. refusals.record notes
//     for its class: refused for jobs that still run at 11:00.
//  3. Job 4 is of the same class (the time limit is not part of it) but ends at 10:30: the refusal does not apply. It
//     starts on n2.
//
// Plan: Starts = job 4 on n2; Reason(2) = Resources, expected 11:00; Reason(3) = Priority. At 11:00 job 2 starts and
// job 3 becomes the head, with a reservation at 12:00.
//
// # What makes a pass cheap
//
// A pass costs classes, starts and changed nodes, not jobs times nodes:
//
//   - Equivalence classes (class.go): jobs with equal requests share a classInfo, and per partition a partitionClass.
//     assess runs when a class appears, and when nodes change for the classes concerned (reassess.go).
//   - Refusals (refusal.go): free resources only shrink within a pass, so a refused class is not tried again for jobs
//     that end as late. The refusal lasts over passes until enough came free (cluster.Nodes.Freed). Refused classes
//     sleep (sleepers.go), and a walk by class (classwalk.go) skips all jobs of such a class at once.
//   - Change tracking (package cluster): package reserve recomputes the start of a head only for nodes that changed.
//   - Reasons are computed on demand; free CPUs and memory of all nodes lie in one slice (package cluster).
//
// # Sub-packages, bottom up
//
//	sorted      a sorted list: queues, ends of jobs      cluster    nodes and running jobs between passes,
//	alloc       one job in numbers                                  reservations of a pass
//	advance     times of advance reservations            license    licenses that are free
//	preempt     who may preempt whom                     reserve    the earliest start of a job
//	ledger      what nodes have free, now and later      victim     whom to preempt for a job
//	fit         whether a job fits, and where            provision  nodes to create or power up
//	timetable   conservative backfill on one node        forecast   when all jobs will start, about
//
// # To change X, look at Y
//
//	order of a queue               queueEntry.Compare (queue.go) and the same in classMember.Compare (classwalk.go);
//	                               withRank (queue.go); between partitions comesBefore (pass.go)
//	who may backfill past whom     walkInOrder (pass.go), before tryStart; see below
//	EASY, conservative, SJF        core.Rule; walkQueues (pass.go); handleBlocked (walk.go); conservative.go
//	number of reservations         reservationsPerQueue (rule.go)
//	when and where one begins      reserveOne (reserve.go); package reserve: search.go; cache.go must agree
//	what backfilled jobs may use   freeUntil, freeAt (ledger/resources.go), Reservations.Add (cluster)
//	preemption                     who: package preempt; which victims: package victim; what follows: preempt.go
//	limits                         package policy; isLimited, isLimitedNow, exceedsLimit (limits.go)
//	advance reservations           package advance, advance.go
//	topology, node sets, GRES      package fit: topology, segments, blocks; nodeset, cover; detail, gputypes
//	provisioning                   package provision; for which jobs: provision.go
//	reasons and their texts        Plan.waitReason (plan.go); assess (class.go)
//	a field of the request         fit/request.go: Request, RequestOf, and always KeyOf, else unequal jobs share a class;
//	                               used by Accepts (fit/place.go), TasksIn and Usage (fit/request.go), fit/alloc.go
//	a rule that differs by QOS     policy.Gate, which each queueEntry has; classKey (class.go) if a refusal depends on it
//
// A rule "job e must not start while job f waits ahead of it" is one condition in walkInOrder before tryStart (both
// walks, by job and by class, pass there): if it holds, call queueWalk.next and continue, which skips e like a job over
// a limit: it is not the head, has no reservation, blocks nobody. Do not call refusals.record: other jobs of the class
// may start. The walk does not visit every job that waits (next and nextStartable skip refused ones), so do not collect
// the f during the walk: keep them in a list, as Planner.enqueue and dequeue keep partition.shortest, and compare e
// with the first of them that has not started in this pass. Compare entries made by queueEntryOf on both sides:
// shortestEntryOf leaves the priority out. All starts go through pass.start, but pass.startedTasks, which has what
// started, is kept only with several partitions or shortest-job rules (beginPass): make it hold for the new rule too.
// An array still waits while startedTasks < Tasks.Len(). Jobs over a limit block nobody (limits.go). Starts outside
// walkInOrder need the condition as well, or the rule excluded: usesTimetable (conservative.go), startElsewhere
// (preempt.go; it has a class and a job, no queueEntry: use gateOf). advanceQueues.walk orders the jobs of one advance
// reservation only.
//
// For "jobs of QOS x never backfill past jobs of QOS y" the setting is a field of core.QOS; compile (policy/gate.go)
// copies it to policy.Gate, as NoReserve (it returns nil for a gate that sets nothing). NewRules (policy/rules.go)
// must learn the field in two places: Rules.some, without which there are no gates at all, and the copy of a QOS that
// it makes when limits are not enforced. setPolicy (limits.go) renews the gates of queued jobs, and the list. A rule of
// more than a screen is a sub-package: internal/arch bounds the lines of this one.
//
// # Tests
//
//	go test ./internal/engine/state -run Scenarios/NAME   transcripts in testdata/*.txt; -rewrite, then read the diff
//	go test ./internal/sched                              laws_*_test.go; TestPlansAreKept is the main law
//	go test ./internal/sim                                TestOracle: a hash of each plan; references for each rule
package sched
