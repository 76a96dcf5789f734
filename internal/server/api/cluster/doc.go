// Package cluster answers the routes of the cluster as a whole: settings, certificate authority, sealing keys, audit
// log, profiles.
package cluster
