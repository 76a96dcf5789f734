// Package cli is the native commands of bireme, each a thin reader of flags over the services of internal/client.
//
// The commands are in sub-packages by subject: jobs (runs and jobs), nodes (nodes and fleets), admin (users, projects,
// policy, tokens, ...) and simulate. This package joins them, and has login, links and shell completion. A command is
// an options struct and run(ctx). Everything it touches (streams, clock, connection, terminal) comes from app.App, so
// tests run it as a user would, against a server of their own. Results go to standard output, all else to standard
// error; every listing has a table and --json. Exit statuses are in app/exit.go and docs/manual/native.md.
package cli
