// Package limit counts what each caller takes of a server and says when it is too much.
//
// A caller is a user, or an address of somebody who is not known yet. Each has a token bucket (calls a second, with a
// burst), a bound on the calls under way, a bound on those that are worked on at once (the others wait in the order
// they came, so that one caller's flood does not take the processors from the rest), on the bytes of their bodies, and
// on open streams. Nothing here knows HTTP. Refusals are *Excess: which limit it was, and when to try again where
// waiting helps.
package limit
