package runlife

import (
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/cron"
)

// Admit checks the rules of a new job and gives one that comes by the clock its first time. A job of a crontab keeps
// to the zone. Such a job waits for its time, and goes back to the queue for the next when it has ended, however it
// did, under the same number; only who ends it ends it for good.
func Admit(j *core.Job, zone *time.Location, now core.Time) error {
	rules := j.Spec.Rules()
	if rules != nil && rules.Retry != nil && rules.Retry.Error && rules.Retry.Duration <= 0 {
		return core.Errorf(core.Invalid, "retry.duration: must be more than 0").Because("invalid_time_value")
	}
	if !j.Spec.Recurs() {
		return nil
	}
	if j.Array != nil || j.Spec.Kind != core.Batch || j.Spec.More().Het != nil {
		return core.Errorf(core.Invalid, "only plain batch jobs can recur").Because("invalid_time_value")
	}
	if j.Spec.Schedule() != "" {
		at, err := NextCron(j.Spec, zone, now)
		j.Eligible = max(j.Eligible, at)
		return err
	}
	at, err := nextTrigger(rules.Schedule, now)
	j.Eligible = max(j.Eligible, at)
	j.Life = &core.RunLife{Trigger: j.Eligible}
	return err
}

// NextCron is when a job of a crontab is due after now.
func NextCron(spec *core.Spec, zone *time.Location, now core.Time) (core.Time, error) {
	plan, err := cron.Parse(spec.Schedule(), cron.Crontab)
	if err != nil {
		return 0, core.Errorf(core.Invalid, "%v", err).Because("invalid_time_value")
	}
	if zone == nil {
		zone = time.UTC
	}
	at, ok := plan.Next(now.Go().In(zone))
	if !ok {
		return 0, core.Errorf(core.Invalid, "%q never comes", plan).Because("invalid_time_value")
	}
	return core.At(at), nil
}

// nextTrigger is the first moment after now at which one of a run's schedules is due.
func nextTrigger(schedules []string, now core.Time) (first core.Time, err error) {
	for _, text := range schedules {
		plan, err := cron.Parse(text, cron.Monday)
		if err != nil {
			return 0, core.Errorf(core.Invalid, "schedule.cron: %v", err).Because("invalid_time_value")
		}
		at, ok := plan.Next(now.Go().In(time.UTC))
		if !ok {
			return 0, core.Errorf(core.Invalid, "schedule.cron: %q never comes", plan).Because("invalid_time_value")
		}
		if next := core.At(at); first == 0 || next < first {
			first = next
		}
	}
	return first, nil
}
