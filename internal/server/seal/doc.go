// Package seal encrypts the secrets that are in the store, with a ring of keys that is in a file beside the server.
//
// The file (0600) holds a line `ID KEY` for each key, the newest last; a file with one bare key of 64 hexadecimal
// digits is a ring of one, with id 1. A sealed text names the key it is under, so the ring may hold several: new texts
// are under the current key, old ones open as long as their key is there. A text is bound to the name it was sealed
// under, so that one secret cannot be put in the place of another.
//
// The cipher is XAES-256-GCM: AES-256-GCM under a key derived from a random nonce of 192 bits, so that the number of
// texts under one key needs no bound.
package seal
