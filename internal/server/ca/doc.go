// Package ca is the cluster's certificate authority: made at first start, kept sealed in the store, used to sign nodes
// and to make the server's own certificate at each start.
//
// The authority's key is sealed (package seal) by a key that is in a file beside the server, so that the database
// alone gives nobody a certificate. All replicas share the one authority: whoever stores it first wins and the others
// read it back.
package ca
