// Package spool keeps places for the scripts and temporary directories of jobs, and uses them again for the same user.
package spool
