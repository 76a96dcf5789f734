package scontrol

import (
	"context"
	"fmt"

	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/report/record"
)

// showLicenses lists licenses, or one of them.
func (s *session) showLicenses(ctx context.Context, args []string) int {
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	list, err := c.Licenses(ctx)
	if err != nil {
		s.w.Errorf("%s", slurm.ErrorText(err))
		return slurm.ExitError
	}
	if s.doc != nil {
		return s.doc.Print(s.w.Out, record.Licenses(list, s.w.Now()), "", false)
	}
	if len(list.Licenses) == 0 {
		fmt.Fprintln(s.w.Out, "No licenses configured in Slurm.")
		return 0
	}
	for i := range list.Licenses {
		l := &list.Licenses[i]
		if len(args) > 0 && args[0] != l.Name {
			continue
		}
		sep := "\n    "
		if s.show.OneLine {
			sep = " "
		}
		fmt.Fprintf(s.w.Out, "LicenseName=%s%sTotal=%d Used=%d Free=%d Reserved=%d Remote=no\n", plain.Cell(l.Name),
			sep, l.Total, l.Used, l.Free(), l.Reserved)
	}
	return 0
}
