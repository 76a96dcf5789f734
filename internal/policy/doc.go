// Package policy works out who comes first and who may: job priorities, fair shares and limits.
//
// Everything here is a function of its arguments. Its parts, in the order a job meets them:
//
//	Check, CheckSubmit   associations and QOS admit a job, or say in Slurm's word which limit does not
//	Bill                 what a job's resources cost a second
//	Decay, Charge        how that adds up to usage and is forgotten
//	Tree.FairShare       what usage and shares make of each association: fair tree, classic or depth-oblivious
//	Config.Factors       a job's factors, and from them Config.Priority its place in the queue
//
// Resources are counted as TRES: cpu, node and gres in units, mem and bb in MiB.
package policy
