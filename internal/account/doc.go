// Package account looks up the accounts of this machine: users, groups, and the groups a user is in.
//
// The programs are built without cgo, so the system's name service is not linked in and os/user would see the files
// only. A Book reads the files itself and asks getent, which speaks to LDAP, SSSD and the like, for what they do not
// say.
package account
