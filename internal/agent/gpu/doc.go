// Package gpu finds the accelerators of a machine, reads how they are used and judges whether they are well.
//
//	nvidia-smi -q -x ─┐
//	amd-smi, rocm-smi ┼─► Look ─► []Seen: what each is (Device) and how it does (Reading) ─► Watch ─► Health
//	xpu-smi, sysfs ───┤                                    kernel log (Xid), dcgmi health ──────┘
//	tt-smi, sysfs ────┘
//
// A maker's tool is run, never linked: its library would need cgo, and a node without the driver must start all the
// same. A machine without a tool has none of its maker's devices.
package gpu
