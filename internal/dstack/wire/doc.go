// Package wire has the models of dstack's HTTP API as Go structs: what its clients send and what they accept as an
// answer. It knows their JSON names, the ids that clients take, and what older clients expect instead.
//
// It holds no policy. Answers name every key that the official server answers, with null where there is nothing:
// clients of all versions then find what they read. Enumerations are closed on the client's side: an answer has no
// other words than those below.
package wire
