package speccheck

import "bireme.dev/bireme/internal/core"

// Ordinary refuses what only an administrator may ask for. A priority of 0 is a hold, which anybody may.
func Ordinary(s *core.Spec) error {
	switch x := s.More(); {
	case x.Priority != nil && *x.Priority != 0:
		return core.Errorf(core.Denied, "only an administrator may set a priority").Because("access_denied")
	case x.Site != 0:
		return core.Errorf(core.Denied, "only an administrator may set a site factor").Because("access_denied")
	case x.SlurmOption("admin-comment") != "":
		return core.Errorf(core.Denied, "only an administrator may set this comment").Because("access_denied")
	}
	return nil
}
