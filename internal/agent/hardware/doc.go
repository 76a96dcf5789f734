// Package hardware finds out what a node has: CPUs and their topology, memory, disks and GPUs, and the clock and
// identity of its boot. It also translates allocations, which count CPUs and units from 0, into the kernel's and
// vendors' names.
package hardware
