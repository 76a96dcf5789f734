// Package volumes mounts the network volumes of jobs for the keeper, and shows them to processes.
package volumes
