// Package initd is the first process of a container: it gives a command its environment, hands signals on to it, reaps
// what it leaves behind and ends with its status.
//
// It links neither HTTP nor TLS, because the program around it (bireme-init) is mounted into every container and must
// stay small and static.
package initd
