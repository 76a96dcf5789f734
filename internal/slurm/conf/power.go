package conf

import "strings"

// suspendTime reads SuspendTime: seconds, or -1 or INFINITE for never.
func suspendTime(v *converter, s Setting) (err error) {
	v.cfg.Power.SuspendTime = 0
	if s.Value != "-1" && !strings.EqualFold(s.Value, "INFINITE") {
		v.cfg.Power.SuspendTime, err = seconds(s.Value)
	}
	return err
}

// resumeTimeout reads ResumeTimeout, which in Slurm also bounds restarts.
func resumeTimeout(v *converter, s Setting) error {
	d, err := seconds(s.Value)
	v.cfg.Power.ResumeTimeout, v.cfg.Reboot.Timeout = d, d
	return err
}
