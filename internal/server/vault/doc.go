// Package vault seals and opens what credentials hold: the values of secrets, private keys, access to repositories.
// What it opens goes to who may have it and into no log.
package vault
