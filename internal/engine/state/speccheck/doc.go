// Package speccheck checks what a job asks for by itself, whatever the cluster is: the length of texts, the range of
// numbers, which fields only the engine sets, shapes that mean something, and records that come from the store.
//
// spec_tables.go has every field of a submission; a field that is in no table fails TestEveryFieldIsClassified. To add
// a field to core.Spec, add a line there.
package speccheck
