// Package cli is the native commands of bireme, each a thin reader of flags over the services of internal/client.
//
// A command is an options struct and run(ctx). Everything it touches (streams, clock, connection, terminal) comes from
// App, so tests run it as a user would, against a server of their own. Results go to standard output, all else to
// standard error; every listing has a table and --json. Exit statuses are in exit.go and docs/commands.md.
package cli
