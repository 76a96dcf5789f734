package state

import (
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/cron"
)

// nextCronTime is when a job that recurs is due after now. Such a job waits for its time, and goes back to the queue
// for the next when it has ended, however it did, under the same number; only who ends it ends it for good.
func (s *State) nextCronTime(spec *core.Spec) (core.Time, error) {
	plan, err := cron.Parse(spec.Schedule(), cron.Crontab)
	if err != nil {
		return 0, core.Errorf(core.Invalid, "%v", err).Because("invalid_time_value")
	}
	zone := s.cfg.Zone.Location
	if zone == nil {
		zone = time.UTC
	}
	at, ok := plan.Next(s.rec.Now().Go().In(zone))
	if !ok {
		return 0, core.Errorf(core.Invalid, "%q never comes", plan).Because("invalid_time_value")
	}
	return core.At(at), nil
}

// admitCron gives a job that recurs its first time.
func (s *State) admitCron(j *core.Job) error {
	if !j.Spec.Recurs() {
		return nil
	}
	if j.Array != nil || j.Spec.Kind != core.Batch || j.Spec.More().Het != nil {
		return core.Errorf(core.Invalid, "only plain batch jobs can recur").Because("invalid_time_value")
	}
	at, err := s.nextCronTime(j.Spec)
	j.Eligible = max(j.Eligible, at)
	return err
}
