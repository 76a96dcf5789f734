// Package stream joins the standard streams of steps with the srun that waits for them.
//
//	srun ══ one connection ══ session ══ one connection a node ══ agents
//
// Each end dials the server under the step's one-time key. Frames of the nodes go to srun whole, frames of srun to
// every node. Nothing is stored: a node waits while srun does not read, and srun while a node does not. A node's
// connection that breaks may come again until its last frame has passed; when srun's breaks, the step has lost its root
// and is ended.
//
// Others may watch a step (sattach). All they see and say passes srun, whichever way its nodes have: the server tells
// it that somebody watches, it sends a copy of what it hears, and hands what they type to the tasks.
package stream
