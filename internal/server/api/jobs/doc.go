// Package jobs answers the routes of jobs and runs: Jobs shows them, Submissions takes them in and tries them,
// Control changes, signals and ends them.
//
// POST /jobs and the brief listing are the hot paths: they read and write JSON by hand (submission.go,
// client.AppendBrief) and touch nothing they do not need.
package jobs
