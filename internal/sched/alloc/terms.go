package alloc

import "bireme.dev/bireme/internal/core"

// Terms say how a job holds its nodes: alone, with others on the same CPUs, or with jobs of the same user only.
type Terms struct {
	Exclusive  bool               // no other job may use its nodes
	MaxSharing int32              // jobs that may use each of its CPUs; 0 or 1: only this one
	User       core.UserName      // not "": only jobs of this user with the same terms may use its nodes
	Partition  core.PartitionName // where it runs: MaxCPUsPerNode counts by partition
}

// TermsOf returns the terms of an allocation that a spec asked for.
func TermsOf(s *core.Spec, al *core.Alloc) Terms {
	t := Terms{Exclusive: s.Shape.Exclusive, Partition: al.Partition}
	if al.More != nil {
		t.Exclusive, t.MaxSharing = t.Exclusive || al.More.Whole, al.More.Share
		if al.More.Own && !t.Exclusive {
			t.User = s.User
		}
	}
	return t
}

// Occupied is what of its allocation a job keeps from others, and on what terms. A suspended job whose CPUs are lent,
// or may be, has no node for itself.
func Occupied(j *core.Job) (*core.Alloc, Terms) {
	al := j.Booked()
	t := TermsOf(j.Spec, al)
	if j.Lends() {
		t.Exclusive = false
	}
	return al, t
}
