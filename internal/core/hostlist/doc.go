// Package hostlist reads and writes the short form of a list of node names, n[001-003,007].
//
// An expression is a comma list (blanks separate too) of names; a name may hold any number of
// bracket groups, each a comma list of numbers and ascending ranges. Several groups multiply, the
// rightmost running fastest: r[1-2]n[1-2] is r1n1 r1n2 r2n1 r2n2. Leading zeros fix the width, so
// n1 and n01 are two different nodes.
//
// Fold is the inverse and keeps the order it is given, byte for byte as Slurm 22.05 does:
//
//	n1 n2 n3 m1 n5  ->  n[1-3],m1,n5
//	r1n1 r1n2 r2n1  ->  r1n[1-2],r2n1     only the last number folds
//	n1 n2 n2 n3     ->  n[1-2,2-3]        duplicates stay
//
// The law, held by a fuzz test: Expand(Fold(names)) is names, for every list of valid names.
// Where Slurm accepts a broken expression and makes something up (n[1 becomes n]), this package
// returns an *Error that says where it broke.
package hostlist
