// Package containers runs jobs in containers of a real engine, through the built programs.
package containers
