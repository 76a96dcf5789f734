package admit

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/named"
)

// QOS gives a job its QOS and checks that its user may use it. As Slurm: the job's own, else the default of the
// user in the project, of the project, of those above it, else the one called normal where there is one and it may be
// used. A QOS that was named must be there and be one that may be used, wherever there are QOS and limits count, and
// where the settings say so.
func (a *Admission) QOS(spec *core.Spec) error {
	allowed, list := a.allowedQOS(spec)
	if spec.QOS == "" {
		spec.QOS = a.defaultQOS(spec, allowed, list)
	}
	if spec.QOS == "" || !a.cfg.EnforceQOS && (a.cfg.NoLimits || len(a.rec.QOSByName()) == 0) {
		return a.checkQOSFlags(spec)
	}
	if _, ok := a.rec.QOSByName()[spec.QOS]; !ok {
		return core.Errorf(core.Invalid, "there is no QOS %q%s", spec.QOS,
			named.Hint(spec.QOS, a.rec.QOSByName())).Because("invalid_qos")
	}
	if !allowed(spec.QOS) {
		return core.Errorf(core.Invalid, "user %s may not use QOS %s in project %s", spec.User, spec.QOS,
			spec.Project).Because("invalid_qos")
	}
	return a.checkQOSFlags(spec)
}

// checkQOSFlags checks what a QOS asks of its jobs.
func (a *Admission) checkQOSFlags(spec *core.Spec) error {
	if q := a.rec.QOSByName()[spec.QOS]; q != nil && q.Flags&core.RequiresReservation != 0 &&
		spec.More().Reservation == "" {
		return core.Errorf(core.Invalid, "jobs with QOS %s need a reservation", spec.QOS).Because("invalid_reservation")
	}
	return nil
}

// allowedQOS tells which QOS a job may have: those of the first list upward; all, if there is none.
func (a *Admission) allowedQOS(spec *core.Spec) (allowed func(core.QOSName) bool, list []core.QOSName) {
	a.rec.EachAssociation(spec.User, spec.Project, func(x *core.Association) bool {
		list = x.QOS
		return len(list) > 0
	})
	return func(name core.QOSName) bool { return len(list) == 0 || slices.Contains(list, name) }, list
}

func (a *Admission) defaultQOS(spec *core.Spec, allowed func(core.QOSName) bool, list []core.QOSName) (
	name core.QOSName,
) {
	a.rec.EachAssociation(spec.User, spec.Project, func(x *core.Association) bool {
		name = x.DefaultQOS
		return name != ""
	})
	if name != "" {
		return name
	}
	if _, ok := a.rec.QOSByName()["normal"]; ok && allowed("normal") {
		return "normal"
	}
	if len(list) > 0 && a.cfg.EnforceQOS { // there is no other that it may have
		return list[0]
	}
	return ""
}

// checkAccess checks who may use a partition.
func (a *Admission) checkAccess(in *Request, spec *core.Spec, part *cluster.Partition) error {
	deny := func(code core.Code, reason, format string, args ...any) error {
		return core.Errorf(code, format, args...).Because(reason)
	}
	root := spec.UID == 0 || in.By.Admin
	switch {
	case part.NoRoot && spec.UID == 0:
		return deny(core.Denied, "invalid_user", "root may not submit to partition %s", part.Name)
	case part.AllocNodes != "" && !a.cluster.Expand(part.AllocNodes)[core.NodeName(spec.From.Host)]:
		return deny(core.Denied, "access_denied", "jobs cannot be submitted to partition %s from host %s", part.Name,
			spec.From.Host)
	case part.RootOnly && !root:
		return deny(core.Denied, "access_denied", "only administrators may submit to partition %s", part.Name)
	case len(part.AllowGroups) > 0 && !root &&
		!slices.ContainsFunc(part.AllowGroups, func(g string) bool { return slices.Contains(in.Groups, g) }):
		return deny(core.Denied, "group_denied", "user %s is in none of the groups that may use partition %s", spec.User,
			part.Name)
	case part.ReqResv && spec.More().Reservation == "":
		return deny(core.Denied, "access_denied", "jobs in partition %s need a reservation", part.Name)
	case len(part.AllowProjects) > 0 && !a.rec.IsUnder(spec.Project, part.AllowProjects):
		return deny(core.Invalid, "invalid_account", "partition %s does not take jobs of project %s", part.Name, spec.Project)
	case len(part.AllowProjects) == 0 && a.rec.IsUnder(spec.Project, part.DenyProjects):
		return deny(core.Invalid, "invalid_account", "partition %s does not take jobs of project %s", part.Name, spec.Project)
	case len(part.AllowQOS) > 0 && !slices.Contains(part.AllowQOS, spec.QOS):
		return deny(core.Invalid, "invalid_qos", "partition %s takes jobs with QOS %s only", part.Name,
			named.Join(part.AllowQOS))
	case len(part.AllowQOS) == 0 && slices.Contains(part.DenyQOS, spec.QOS):
		return deny(core.Invalid, "invalid_qos", "partition %s does not take jobs with QOS %s", part.Name, spec.QOS)
	}
	return nil
}

// UsablePartitions leaves the partitions of a list that the job may use. One is enough.
func (a *Admission) UsablePartitions(in *Request, spec *core.Spec) (list core.PartitionList, err error) {
	if part := a.cluster.Partitions[spec.Partition.First()]; spec.Partition.Len() == 1 {
		return spec.Partition, a.checkAccess(in, spec, part)
	}
	var names []core.PartitionName
	for name := range spec.Partition.All() {
		if no := a.checkAccess(in, spec, a.cluster.Partitions[name]); no == nil {
			names = append(names, name)
		} else if err == nil {
			err = no
		}
	}
	if len(names) == 0 {
		return list, err
	}
	return core.ListPartitions(names...), nil
}

// ReservationsAndLicenses checks the reservations and licenses a job asks for.
func (a *Admission) ReservationsAndLicenses(in *Request, spec *core.Spec) error {
	x := spec.Extra
	if x == nil {
		return nil
	}
	if x.Reservation != "" {
		for name := range strings.SplitSeq(x.Reservation, ",") {
			r, ok := a.rec.ReservationsByName()[name]
			if !ok || r.Flags&core.ReserveTimeFloat != 0 {
				return core.Errorf(core.Invalid, "there is no reservation %q that jobs can run in",
					name).Because("invalid_reservation")
			}
			if !a.reservations.MayUse(r, in.Groups, spec) {
				return core.Errorf(core.Denied, "reservation %s is not for %s in project %s", name, spec.User,
					spec.Project).Because("reservation_access")
			}
		}
	}
	return a.checkLicenses(x.Licenses)
}

// checkLicenses refuses what can never be given: names that are not known, and more than there is.
func (a *Admission) checkLicenses(asked core.Licenses) error {
	if err := asked.Fault(); err != nil {
		return core.Errorf(core.Invalid, "%v", err).Because("invalid_license")
	}
	req := asked.Request()
	if req == nil {
		return nil
	}
	possible := false
	for _, l := range req.List {
		total, ok := a.cluster.LicenseTotals[l.Name]
		switch {
		case !ok:
			return core.Errorf(core.Invalid, "there is no license %q", l.Name).Because("invalid_license")
		case l.Total <= total:
			possible = true
		case !req.Any:
			return core.Errorf(core.Invalid, "the job requests %d of license %s; there are %d", l.Total, l.Name,
				total).Because("invalid_license")
		}
	}
	if !possible {
		return core.Errorf(core.Invalid, "there are not enough licenses for any of %q",
			asked.String()).Because("invalid_license")
	}
	return nil
}
