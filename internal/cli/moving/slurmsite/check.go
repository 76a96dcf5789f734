package slurmsite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/slurm/conf"
)

// Finding is something that an administrator should know before moving.
type Finding struct {
	Kind string `json:"kind"` // fault, key, program, user, server
	Name string `json:"name"`
	Note string `json:"note"`
}

func (s *site) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "what of a slurm.conf has no effect, and what is missing", Args: cobra.NoArgs,
		Long: `Read the site's slurm.conf and the files beside it, and list: faults, keys without effect with
the reason, programs that it names and that are not here or cannot be run, users of slurmdbd whom this
machine does not know, and whether a server of Bireme answers. Nothing is changed. The exit status is
6 where there are faults.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.check(cmd.Context()) },
	}
}

func (s *site) check(ctx context.Context) error {
	file := s.settings()
	site, err := conf.Read(file)
	if err != nil {
		return app.Usagef("migrate: %v", err)
	}
	list := s.programs(site)
	stdout, stderr, err := s.biremed(ctx, "config", "check", "--slurm-conf", file)
	if err != nil {
		return err
	}
	faults := 0
	for line := range strings.Lines(stderr + stdout) {
		line = strings.TrimSpace(line)
		key, isNote := strings.CutPrefix(line, "note: ")
		switch {
		case line == "" || line == "ok" || strings.HasPrefix(line, "biremed: the settings"):
		case isNote:
			name, why := splitNote(key)
			list = append(list, Finding{"key", name, why})
		default:
			faults++
			list = append(list, Finding{"fault", file, line})
		}
	}
	list = append(list, s.missingUsers(ctx)...)
	list = append(list, s.server(ctx))
	if err := s.showFindings(list); err != nil {
		return err
	}
	if faults > 0 {
		return &app.StatusError{Code: app.ExitConflict}
	}
	return nil
}

// splitNote takes "slurm.conf:2: Key=Value: why" apart.
func splitNote(text string) (name, why string) {
	where, rest, ok := strings.Cut(text, ": ")
	if !ok {
		return text, ""
	}
	i := strings.LastIndex(rest, ": ")
	if i < 0 {
		return where, rest
	}
	return where + " " + rest[:i], rest[i+2:]
}

func (s *site) showFindings(list []Finding) error {
	if s.json {
		return s.app.PrintJSON(struct {
			Findings []Finding `json:"findings"`
		}{list})
	}
	t := app.Table{{"KIND", "NAME", "NOTE"}}
	for _, f := range list {
		t.Row(f.Kind, f.Name, f.Note)
	}
	return t.Write(s.app.Out)
}

// isProgram finds keys whose value is the path of a program.
var isProgram = regexp.MustCompile(`(?i)(prolog|epilog|program|prog)(slurmctld)?$`)

// programs lists those that slurm.conf names.
func (s *site) programs(site *conf.Conf) (list []Finding) {
	for _, set := range site.Settings {
		if !isProgram.MatchString(set.Key) || !strings.HasPrefix(set.Value, "/") {
			if strings.EqualFold(set.Key, "JobSubmitPlugins") && strings.Contains(set.Value, "lua") {
				list = append(list, s.program("JobSubmitPlugins=lua", filepath.Join(filepath.Dir(s.settings()), "job_submit.lua"),
					0))
			}
			continue
		}
		list = append(list, s.program(set.Key, set.Value, 0o111))
	}
	return list
}

func (s *site) program(key, path string, mode os.FileMode) Finding {
	f := Finding{"program", key + "=" + path, "found"}
	if strings.ContainsAny(path, "*?[") {
		names, _ := filepath.Glob(path)
		f.Note = fmt.Sprintf("%d found", len(names))
		return f
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		f.Note = "it is not on this machine"
	case info.IsDir():
		f.Note = "it is a folder"
	case mode != 0 && info.Mode()&mode == 0:
		f.Note = "it cannot be run"
	}
	return f
}

// missingUsers asks Slurm for its users, where it answers.
func (s *site) missingUsers(ctx context.Context) (list []Finding) {
	text, err := s.slurm(ctx, "sacctmgr", "-nP", "show", "user", "format=user")
	if err != nil {
		return []Finding{{"user", "-", "Slurm's users are not known: " + err.Error()}}
	}
	var missing []string
	count := 0
	for name := range strings.Lines(text) {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		count++
		if _, err := account.ByName(name); err != nil {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	for _, name := range missing {
		list = append(list, Finding{"user", name, "this machine does not know the user, who cannot run processes here"})
	}
	if len(missing) == 0 {
		list = append(list, Finding{"user", "-", fmt.Sprintf("this machine knows all %s", app.Plural(count, "user"))})
	}
	return list
}

func (s *site) server(ctx context.Context) Finding {
	c, err := s.app.Connect()
	if err == nil {
		_, err = c.Whoami(ctx)
	}
	if err != nil {
		return Finding{"server", "-", "no server of Bireme answers: " + err.Error()}
	}
	return Finding{"server", "-", "it answers"}
}
