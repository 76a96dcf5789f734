package scontrol

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// makeToken makes a JWT for the REST API: token [lifespan=SECONDS|infinite] [username=NAME].
func makeToken(s *session, ctx context.Context, args []string) int {
	in := &client.NewJWT{}
	for _, word := range args {
		p, ok := parsePair(word)
		if !ok || p.sign != 0 {
			fmt.Fprintf(s.w.Err, "Invalid option: `%s`\n", word)
			return slurm.ExitError
		}
		switch p.key {
		case "lifespan":
			n, err := strconv.ParseUint(p.value, 10, 31)
			in.Lifespan = core.Seconds(n)
			if strings.EqualFold(p.value, "infinite") {
				in.Lifespan, err = core.Forever, nil
			}
			if err != nil {
				s.w.Errorf("Invalid lifespan: %s", p.value)
				return slurm.ExitError
			}
		case "username":
			in.User = core.UserName(p.value)
		default:
			fmt.Fprintf(s.w.Err, "Invalid option: `%s`\n", word)
			return slurm.ExitError
		}
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	made, err := c.NewJWT(ctx, in)
	if err != nil {
		s.w.Errorf("Failed to retrieve token: %s", slurm.ErrorText(err))
		s.w.HintOf(err)
		return slurm.ExitError
	}
	fmt.Fprintf(s.w.Out, "SLURM_JWT=%s\n", made.Token)
	return 0
}
