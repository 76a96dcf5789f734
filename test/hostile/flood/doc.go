// Package flood is an attacker's client: it does all it can to keep a server from serving others. It sends requests, opens
// streams, makes tokens and submits jobs, each from many connections at once, and minds no refusal. Tests and the bench run
// it as an ordinary user in a process of its own (Main), within a share of the processors (Cage).
package flood
