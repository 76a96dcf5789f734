package slurmsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
)

// site is the Slurm that is moved here, and how it is reached.
type site struct {
	app  *app.App
	exe  func() (string, error)
	bin  string // folder of Slurm's own commands
	conf string // slurm.conf
	json bool
}

// MigrateCommand is bireme migrate; exe gives the path of this program, beside which biremed lies.
func MigrateCommand(a *app.App, exe func() (string, error)) *cobra.Command {
	s := &site{app: a, exe: exe}
	c := &cobra.Command{
		Use: "migrate", Short: "move a site here, step by step", Args: app.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	slurm := &cobra.Command{
		Use: "slurm", Short: "move a Slurm site here: check, shadow, cutover, back", Args: app.NoSuchCommand,
		Long: `Move a Slurm site here, step by step. Each step can be repeated.

    bireme migrate slurm check      what of slurm.conf has no effect, programs and users that are missing
    bireme import slurmdbd DUMP     accounts, QOS, usage and jobs
    bireme migrate slurm shadow     when Bireme would have started the jobs that Slurm has
    bireme migrate slurm cutover    Slurm takes no more jobs; what waits there is saved
    bireme migrate slurm back       Slurm takes jobs again

check and shadow change nothing. Slurm's commands are looked for in PATH, or in --slurm-bin.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := slurm.PersistentFlags()
	f.StringVar(&s.bin, "slurm-bin", "", "`FOLDER` of Slurm's own commands (default: PATH)")
	f.StringVar(&s.conf, "slurm-conf", "",
		"the site's slurm.conf `FILE` (default: SLURM_CONF, then /etc/slurm/slurm.conf)")
	f.BoolVar(&s.json, "json", false, "print JSON")
	slurm.AddCommand(s.checkCommand(), s.shadowCommand(), s.cutoverCommand(), s.backCommand())
	c.AddCommand(slurm)
	return c
}

// settings is the path of slurm.conf.
func (s *site) settings() string {
	if s.conf != "" {
		return s.conf
	}
	if name, ok := s.app.Lookup("SLURM_CONF"); ok && name != "" {
		return name
	}
	return "/etc/slurm/slurm.conf"
}

// isDefault finds variables of the environment that change what Slurm's commands print.
func isDefault(v string) bool {
	for _, p := range []string{
		"SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SLURM_CLUSTERS=", "SLURM_TIME_FORMAT=",
		"LC_ALL=",
	} {
		if strings.HasPrefix(v, p) {
			return true
		}
	}
	return false
}

// commandTime bounds how long one of Slurm's commands may take.
const commandTime = 2 * time.Minute

// slurm runs one of Slurm's own commands and returns what it prints.
func (s *site) slurm(ctx context.Context, name string, args ...string) (string, error) {
	path := name
	if s.bin != "" {
		path = filepath.Join(s.bin, name)
	}
	path, err := exec.LookPath(path)
	if err != nil {
		return "", app.Usagef("migrate: there is no %s: say with --slurm-bin where Slurm's commands are", name)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && strings.HasPrefix(filepath.Base(real), "bireme") {
		return "", app.Usagef("migrate: %s is Bireme's own: say with --slurm-bin where Slurm's commands are", path)
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), isDefault), "SLURM_TIME_FORMAT=%s", "LC_ALL=C")
	if s.conf != "" {
		cmd.Env = append(cmd.Env, "SLURM_CONF="+s.conf)
	}
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(problem.String())
		if text == "" {
			text = err.Error()
		}
		return "", fmt.Errorf("%s: %s", name, text)
	}
	return out.String(), nil
}

// biremed runs the daemon's program, which lies beside this one.
func (s *site) biremed(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	program := "biremed"
	if self, err := s.exe(); err == nil {
		beside := filepath.Join(filepath.Dir(self), program)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			program = beside
		}
	}
	var out, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &problem
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out.String(), problem.String(), nil
	}
	return out.String(), problem.String(), err
}

// fields reads "Key=Value Key=Value …" of scontrol -o; a value may hold blanks, but no " Key=".
func fields(line string) map[string]string {
	out := map[string]string{}
	key := ""
	for word := range strings.FieldsSeq(line) {
		if k, v, ok := strings.Cut(word, "="); ok && k != "" && out[k] == "" && k[0] >= 'A' && k[0] <= 'Z' {
			key = k
			out[key] = v
		} else if key != "" {
			out[key] += " " + word
		}
	}
	return out
}
