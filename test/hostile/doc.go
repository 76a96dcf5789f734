// Package hostile attacks a real server and real agents as an ordinary user would: with the built commands, and with
// requests that no command of ours makes. Each test does what the attacker does, then proves that nobody else was
// harmed: the server runs, other users' jobs and files are as before, and the refusal says which limit or right it was.
package hostile
