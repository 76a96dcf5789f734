// Package policy works out who comes first and who may: job priorities, fair shares and limits.
//
// Everything here is a function of its arguments. Its parts, in the order a job meets them:
//
//	Rules                the limits of associations and QOS; a Tally counts against them, a Gate is those of some jobs
//	Tally.Admit, Why     whether they let a job in, or start, or which limit does not, in Slurm's word and a sentence
//	Bill                 what a job's resources cost a second
//	Meter, Setting.Read  how that adds up to usage and is forgotten
//	Tree.FairShare       what usage and shares make of each association: fair tree, classic or depth-oblivious
//	Config.Factors       a job's factors, and from them Config.Priority its place in the queue
//
// Resources are counted as TRES: cpu, node and gres in units, mem and bb in MiB.
package policy
