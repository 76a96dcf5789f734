//go:build !linux

package cmd

import "bireme.dev/bireme/internal/slurm"

// ThisProcess: elsewhere nothing but the usual umask is passed on, as limits of another system mean little on a node.
func ThisProcess() slurm.Process { return slurm.Process{Umask: 0o022} }

// Session is not known.
func Session() int32 { return 0 }
