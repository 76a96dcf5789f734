// Package flood is an attacker's client: it does all it can to keep a server from serving others. One process each
// makes requests, opens streams, makes and rotates tokens, submits jobs and opens connections, minds no refusal, and
// counts what was served and which limit refused the rest (Main). Start runs them as an ordinary user within a share of
// the processors (Cage).
package flood
