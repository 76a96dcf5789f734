package state

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/named"
)

// admitQOS gives a job its QOS and checks that its user may use it. As Slurm: the job's own, else the default of the
// user in the project, of the project, of those above it, else the one called normal where there is one and it may be
// used. A QOS that was named must be there and be one that may be used, wherever there are QOS and limits count, and
// where the settings say so.
func (s *State) admitQOS(spec *core.Spec) error {
	allowed, list := s.allowedQOS(spec)
	if spec.QOS == "" {
		spec.QOS = s.defaultQOS(spec, allowed, list)
	}
	if spec.QOS == "" || !s.cfg.EnforceQOS && (s.cfg.NoLimits || len(s.rec.QOSByName()) == 0) {
		return s.admitQOSFlags(spec)
	}
	if _, ok := s.rec.QOSByName()[spec.QOS]; !ok {
		return core.Errorf(core.Invalid, "there is no QOS %q%s", spec.QOS,
			named.Hint(spec.QOS, s.rec.QOSByName())).Because("invalid_qos")
	}
	if !allowed(spec.QOS) {
		return core.Errorf(core.Invalid, "user %s may not use QOS %s in project %s", spec.User, spec.QOS,
			spec.Project).Because("invalid_qos")
	}
	return s.admitQOSFlags(spec)
}

// admitQOSFlags checks what a QOS asks of its jobs.
func (s *State) admitQOSFlags(spec *core.Spec) error {
	if q := s.rec.QOSByName()[spec.QOS]; q != nil && q.Flags&core.RequiresReservation != 0 &&
		spec.More().Reservation == "" {
		return core.Errorf(core.Invalid, "jobs with QOS %s need a reservation", spec.QOS).Because("invalid_reservation")
	}
	return nil
}

// allowedQOS tells which QOS a job may have: those of the first list upward; all, if there is none.
func (s *State) allowedQOS(spec *core.Spec) (allowed func(core.QOSName) bool, list []core.QOSName) {
	s.rec.EachAssociation(spec.User, spec.Project, func(a *core.Association) bool {
		list = a.QOS
		return len(list) > 0
	})
	return func(name core.QOSName) bool { return len(list) == 0 || slices.Contains(list, name) }, list
}

func (s *State) defaultQOS(spec *core.Spec, allowed func(core.QOSName) bool, list []core.QOSName) (name core.QOSName) {
	s.rec.EachAssociation(spec.User, spec.Project, func(a *core.Association) bool {
		name = a.DefaultQOS
		return name != ""
	})
	if name != "" {
		return name
	}
	if _, ok := s.rec.QOSByName()["normal"]; ok && allowed("normal") {
		return "normal"
	}
	if len(list) > 0 && s.cfg.EnforceQOS { // there is no other that it may have
		return list[0]
	}
	return ""
}

// admitPartitionAccess checks who may use a partition.
func (s *State) admitPartitionAccess(in *Submit, spec *core.Spec, part *cluster.Partition) error {
	deny := func(code core.Code, reason, format string, args ...any) error {
		return core.Errorf(code, format, args...).Because(reason)
	}
	root := spec.UID == 0 || in.By.Admin
	switch {
	case part.RootOnly && !root:
		return deny(core.Denied, "access_denied", "only administrators may submit to partition %s", part.Name)
	case len(part.AllowGroups) > 0 && !root &&
		!slices.ContainsFunc(part.AllowGroups, func(g string) bool { return slices.Contains(in.Groups, g) }):
		return deny(core.Denied, "group_denied", "user %s is in none of the groups that may use partition %s", spec.User,
			part.Name)
	case part.ReqResv && spec.More().Reservation == "":
		return deny(core.Denied, "access_denied", "jobs in partition %s need a reservation", part.Name)
	case len(part.AllowProjects) > 0 && !s.rec.IsUnder(spec.Project, part.AllowProjects):
		return deny(core.Invalid, "invalid_account", "partition %s does not take jobs of project %s", part.Name, spec.Project)
	case len(part.AllowProjects) == 0 && s.rec.IsUnder(spec.Project, part.DenyProjects):
		return deny(core.Invalid, "invalid_account", "partition %s does not take jobs of project %s", part.Name, spec.Project)
	case len(part.AllowQOS) > 0 && !slices.Contains(part.AllowQOS, spec.QOS):
		return deny(core.Invalid, "invalid_qos", "partition %s takes jobs with QOS %s only", part.Name,
			named.Join(part.AllowQOS))
	case len(part.AllowQOS) == 0 && slices.Contains(part.DenyQOS, spec.QOS):
		return deny(core.Invalid, "invalid_qos", "partition %s does not take jobs with QOS %s", part.Name, spec.QOS)
	}
	return nil
}

// usablePartitions leaves the partitions of a list that the job may use. One is enough.
func (s *State) usablePartitions(in *Submit, spec *core.Spec) (list core.PartitionName, err error) {
	if part := s.cluster.Partitions[spec.Partition]; part != nil {
		return spec.Partition, s.admitPartitionAccess(in, spec, part)
	}
	var names []string
	for name := range strings.SplitSeq(string(spec.Partition), ",") {
		if no := s.admitPartitionAccess(in, spec, s.cluster.Partitions[core.PartitionName(name)]); no == nil {
			names = append(names, name)
		} else if err == nil {
			err = no
		}
	}
	if len(names) == 0 {
		return "", err
	}
	return core.PartitionName(strings.Join(names, ",")), nil
}
