// Package grammar parses and formats the small languages users write: time limits, moments, sizes, task arrays,
// generic resources, signals, node counts, constraints, licenses, dependencies (Slurm's), and the sizes, ranges,
// durations and GPU specs of dstack configurations.
//
// It imports nothing of core's but the sets of array tasks. Core is built on it: core.Constraint, core.Licenses,
// core.SwitchLimit and core.Dependency hold a text together with what it was parsed to, and are what records and
// commands carry. Only what takes a text from outside parses one.
//
// Every function is pure; the present moment and its time zone are arguments. Every fault is an
// *Error that carries the text, the place in it, what is wrong and what would be right, so that a
// tongue can print its own words without parsing anything again. Where there is a formatter, the
// law Parse(Format(x)) == x holds and is fuzzed.
//
// Slurm's grammars and layouts are those observed on Slurm 22.05.8; where it accepts nonsense in
// silence (a limit of -5, 30 February) we refuse.
package grammar
