// Package adopt lets a session that came by ssh into a job of its user: it finds the user's jobs on this node by what
// the keeper holds in its cgroups, and puts a process into those of the newest. It asks nobody but the kernel and the
// keeper's own files, which only root can write, so it works while the server and the agent are away.
package adopt
