// Package journal keeps on disk what a keeper runs and what has ended, for a successor to take over or to clean up.
package journal
