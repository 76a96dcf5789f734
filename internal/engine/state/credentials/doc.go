// Package credentials has secrets, repositories and keys of projects and users: their table and the rules by which they
// change. What is sealed is opened by the server only; here it is a text that is kept and compared.
package credentials
