// Package provision decides which nodes to create or power up for jobs that wait.
package provision
