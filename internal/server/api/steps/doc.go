// Package steps answers the routes of steps and of everything that lasts: the streams of srun and of nodes, agents'
// sessions, and logs that are followed.
package steps
