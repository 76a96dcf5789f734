package core

import (
	"slices"
	"strings"
)

// ContainerCaps are the capabilities that root has in an ordinary user's container where a site does not say: those by
// which it manages the container's own files and processes. Each is bounded by the container's file systems and
// processes.
//
//	AUDIT_WRITE, SYS_CHROOT  sshd records logins, and locks its unprivileged part into a folder
//	CHOWN, FOWNER, FSETID    package managers and archives set owners, modes and the set-group-id bit of files
//	DAC_OVERRIDE             root reads and writes the image's files, whoever owns them
//	KILL                     the first process passes signals on to the programs of other users
//	SETGID, SETUID           the first process becomes the image's user, package managers an unprivileged one
//
// Not among them, of what engines give by default: NET_BIND_SERVICE (file servers take who calls from a low port for
// the node's root), NET_RAW (reads and forges what others on the network send), MKNOD, SETFCAP, SETPCAP.
var ContainerCaps = strings.Fields("AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SYS_CHROOT")

// capabilities are the names that Linux has, without CAP_.
var capabilities = []string{
	"AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE", "CHOWN", "DAC_OVERRIDE",
	"DAC_READ_SEARCH",
	"FOWNER", "FSETID", "IPC_LOCK", "IPC_OWNER", "KILL", "LEASE", "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE",
	"MKNOD", "NET_ADMIN",
	"NET_BIND_SERVICE", "NET_BROADCAST", "NET_RAW", "PERFMON", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYSLOG",
	"SYS_ADMIN", "SYS_BOOT",
	"SYS_CHROOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE", "SYS_TIME",
	"SYS_TTY_CONFIG", "WAKE_ALARM",
}

// Capability gives the name of a capability without CAP_, and whether there is such a one.
func Capability(name string) (string, bool) {
	name = strings.TrimPrefix(strings.ToUpper(name), "CAP_")
	return name, slices.Contains(capabilities, name)
}
