// Package parcel packs files on one machine so that another lays them out: `files:` of a run, from the directory of
// whoever applies it into its containers.
//
// A parcel is a tar. Its first member, "to", lists in JSON where each item goes; the members of item 3 are "3" itself
// and, if that is a directory, what is below it, "3/…". Modes and links are kept; owners and times are not, so that the
// same files make the same parcel.
package parcel
