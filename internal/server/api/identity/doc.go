// Package identity finds out who calls: by a token, by the kernel's word for the uid on a local socket, or by a node's
// certificate and that node's word. It also joins nodes, renews their certificates, and keeps tokens.
package identity
