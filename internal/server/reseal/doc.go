// Package reseal puts everything sealed in the store under another key, in batches, beside a server that works or
// without one, and continues where it was ended.
//
// A rotation is: a key newer than the present one, in the ring's file and on disk; the store's note that this is the
// present key; the fleets, the sealed table and the packs, a transaction for each batch with how far it came; a count
// that nothing is left under another key; and only then the older keys leave the file. Whoever leads next finds in the
// note what is left to do. A server whose ring lacks the present key refuses to lead, with the file's name.
package reseal
