// Package launcher runs a step in a container that no engine makes but a program of the node, as the job's user: an
// image by apptainer, singularity or enroot, a bundle by an OCI runtime.
//
// The keeper starts it (bireme-container) in the step's place, as the step's user and in the job's cgroups, with the
// launch on descriptor 3. It fetches the image if that is not there, computes the command line and becomes that
// program. So to the keeper a container is nothing but processes: limits, signals, streams and adoption are theirs.
// Variables go by the environment, the script on a descriptor or in a file in memory: neither stands on a command line.
//
// What goes wrong before that is told in the launch's directory, for the agent to tell (Fault).
package launcher
