// Package events answers dstack's call for what happened. It is told from Bireme's own events, which stay for as long
// as retention.events says, in dstack's words: of runs and their jobs, fleets and nodes, projects, users and secrets.
package events
