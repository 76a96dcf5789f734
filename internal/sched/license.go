package sched

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/sched/advance"
)

// licensesFor returns the licenses a job of a class would hold between two times, or nil if they are not free.
func (ps *pass) licensesFor(s *partitionClass, from, end core.Time) []core.License {
	return ps.p.licenses.For(s.licenses, s.Advance, from, end)
}

// missingLicense returns the name of a license that is not free now for a job of the class; "": all are.
func (ps *pass) missingLicense(s *partitionClass) (name string) {
	if len(s.options) == 0 {
		return ps.p.licenses.Missing(s.licenses, s.Advance)
	}
	for i := range s.options {
		if name = ps.missingLicense(&s.options[i]); name == "" {
			return ""
		}
	}
	return name
}

// waitsForOther reports whether a job waits for licenses, or for an advance reservation to begin. Nodes may be idle for
// it for long. If it is the head of its queue, the first job behind it that waits for nodes gets a reservation too, so
// that it is not delayed forever. Its start is not promised in the plan.
func (ps *pass) waitsForOther(e *queueEntry) bool {
	s := e.class
	if s.licenses != nil && ps.missingLicense(s) != "" {
		return true
	}
	for i := range s.options {
		if _, _, ok := advance.EndTimes(e.job.Spec, s.options[i].Advance, ps.plan.Now); ok {
			return false
		}
	}
	return s.namesAdvance
}

// explainLicenses records which classes wait for licenses at the end of a pass.
func (ps *pass) explainLicenses() {
	if ps.p.classes.licensed == 0 {
		return
	}
	for k, c := range ps.p.classes.byKey {
		if c.licenses == nil || len(c.partitions) == 0 {
			continue
		}
		if name := ps.missingLicense(&c.partitions[0]); name != "" {
			if ps.plan.licenseReasons == nil {
				ps.plan.licenseReasons = map[classKey]Reason{}
			}
			if v := storage.OfLicense(name); v != "" {
				ps.plan.licenseReasons[k] = Reason{
					Code: core.ReasonLicenses,
					Text: fmt.Sprintf("it waits for volume %s, which one job at a time may have: another job has it", v),
				}
				continue
			}
			pool := ps.p.licenses.Pool(name)
			ps.plan.licenseReasons[k] = Reason{
				Code: core.ReasonLicenses,
				Text: fmt.Sprintf("it waits for license %s: %d of %d are in use", name, pool.Used, pool.Total),
			}
		}
	}
}
