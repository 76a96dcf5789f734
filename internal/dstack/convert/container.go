package convert

import (
	"cmp"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/attach"
	"bireme.dev/bireme/internal/dstack/config"
)

// The images of a container that names none, as dstack 0.22.5 has them: CUDA's runtime, with nvcc its compiler, or
// Docker itself.
const (
	baseImage  = "dstackai/base:0.16-base-ubuntu24.04"
	develImage = "dstackai/base:0.16-devel-ubuntu24.04"
	dindImage  = "dstackai/dind"
)

// Images are those of containers that name none; an empty one is dstack's own.
type Images struct{ Base, Devel, Docker string }

// imageOf is the image of a run.
func imageOf(r *config.Run, site Images) string {
	switch {
	case r.Image != nil:
		return *r.Image
	case config.Value(r.Docker):
		return cmp.Or(site.Docker, dindImage)
	case config.Value(r.NVCC):
		return cmp.Or(site.Devel, develImage)
	}
	return cmp.Or(site.Base, baseImage)
}

// shellOf is the shell that runs the commands.
func shellOf(r *config.Run, contained bool) string {
	switch shell := config.Value(r.Shell); {
	case shell == "sh" || shell == "" && contained && r.Image != nil:
		return "/bin/sh"
	case shell == "bash" || shell == "":
		return "/bin/bash"
	default:
		return shell
	}
}

func (b *builder) container(shm core.Bytes) *core.Container {
	r := b.run
	c := &core.Container{
		Image: imageOf(r, b.o.Images), WorkDir: config.Value(r.WorkingDir), User: config.Value(r.User),
		Privileged: r.Privileged || config.Value(r.Docker), Shm: shm, Terminal: true,
	}
	for i := range r.Volumes {
		m := &r.Volumes[i]
		if !m.IsInstance() {
			continue
		}
		c.Mounts = append(c.Mounts, core.Mount{Source: m.InstancePath, Target: m.Path, Optional: m.Optional})
	}
	for _, p := range b.s.Ports() {
		c.Ports = append(c.Ports, core.Port{Local: int32(config.Value(p.Local)), Container: int32(p.Container)})
	}
	if r.Entrypoint != nil {
		if words, err := config.SplitWords(*r.Entrypoint); err == nil { // it was checked when it was read
			c.Own, c.Entry = true, words
		}
	}
	if b.s.Configuration.DevEnvironment == nil && len(b.commands()) == 0 {
		c.Own = true
	}
	return c
}

// commands are those that the run's kind has.
func (b *builder) commands() []string { return b.s.commands(b.o.Name) }

func (s *Spec) commands(name string) []string {
	switch c := &s.Configuration; {
	case c.Task != nil:
		return c.Task.Commands
	case c.DevEnvironment != nil:
		return devCommands(c.DevEnvironment, name)
	case c.Service != nil:
		return c.Service.Commands
	}
	return nil
}

// devCommands prepare a dev environment, tell how it is reached, and wait for its end.
func devCommands(d *config.DevEnvironment, name string) []string {
	list := append(append([]string{}, d.Setup...), d.Init...)
	list = append(list, "echo")
	if ide := config.Value(d.IDE); ide != "" {
		// The folder is the one that the job starts in, which only the job knows.
		link := strings.TrimSuffix(attach.IDELink(ide, name, ""), "/")
		list = append(list, "echo "+config.QuoteWord("To open in "+attach.IDEName(ide)+", use link below:"), "echo",
			`echo "  `+link+`$DSTACK_WORKING_DIR"`, "echo")
	}
	return append(list, "echo "+config.QuoteWord("To connect via SSH, use: `ssh "+name+"`"), "echo",
		"echo -n "+config.QuoteWord("To exit, press Ctrl+C."), "tail -f /dev/null")
}

// ownScript stands where a submission has its script when the image's own program runs.
const ownScript = "#!image\n"

// script joins the commands so that each runs only if the one before it succeeded, in one shell: what a command exports
// or where it goes holds for the next. Each stands on lines of its own inside braces, so that a comment at its end, a
// trailing & or a here-document means what it says; the colon makes a command of nothing but comments legal.
func (b *builder) script() string {
	commands := b.commands()
	if b.contains && (b.run.Entrypoint != nil || len(commands) == 0) && len(b.s.groups()) == 0 {
		return ownScript
	}
	var t strings.Builder
	if b.contains {
		t.WriteString(prelude(b.run) + "export DSTACK_WORKING_DIR=\"$PWD\"\n")
	} else {
		t.WriteString(chdir(config.Value(b.run.WorkingDir), len(b.run.Files) > 0))
	}
	t.WriteString(checkpointScript(b.s.Configuration.Additions.Checkpoint))
	if repo := b.s.repo(b.o.Name); repo != nil {
		t.WriteString(repo.Script() + "export DSTACK_REPO_ID=" + config.QuoteWord(config.Value(b.s.RepoID)) + "\n")
	}
	if groups := b.s.groups(); len(groups) > 0 {
		t.WriteString(groupCommands(groups))
	} else {
		t.WriteString(join(commands))
	}
	body := t.String() + "\n"
	shell := shellOf(b.run, b.contains)
	head := "#!" + shell + "\n"
	if b.s.Nodes() == 1 || b.contains { // the first of several containers starts it in the others
		return head + body
	}
	// A batch script runs on the first node; a step takes the commands to all of them, and fails when one node does, with
	// that node's status. It overlaps with the steps that the commands make.
	return head + "export BIREME_STEP_STATUS=first BIREME_RANK_MARKS=1\n" +
		`exec "${BIREME_EXE:-bireme}" srun --overlap --ntasks-per-node=1 --kill-on-bad-exit=1 ` +
		config.QuoteWord(shell) + " -c " +
		config.QuoteWord("export DSTACK_NODE_RANK=$SLURM_NODEID\n"+ownBinding+hostfile+body) + "\n"
}

// ownBinding lets an srun of the commands bind its tasks by its own step, not as the step that the commands are in, and
// end as any srun does.
const ownBinding = "unset BIREME_STEP_STATUS BIREME_RANK_MARKS SLURM_CPU_BIND SLURM_CPU_BIND_LIST " +
	"SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_VERBOSE\n"

// join makes one text of commands, each of which runs if the one before it succeeded.
func join(commands []string) string {
	var t strings.Builder
	for i, c := range commands {
		if i > 0 {
			t.WriteString(" && ")
		}
		t.WriteString("{ :\n" + strings.TrimRight(c, " \t\r\n") + "\n}")
	}
	return t.String()
}

// prelude is what the images without a name do before the commands.
func prelude(r *config.Run) string {
	switch {
	case config.Value(r.Docker):
		return "start-dockerd || exit\n"
	case r.Python != nil:
		return "export DSTACK_VENV_DIR=\"$HOME/.venv\"\nuv venv -q --seed --python " + *r.Python +
			" \"$DSTACK_VENV_DIR\" && . \"$DSTACK_VENV_DIR/bin/activate\" || exit\n"
	}
	return ""
}

// chdir goes to the working directory. One that was asked for must be there; a home may be missing. With files it is
// the folder that has them.
func chdir(dir string, files bool) string {
	to := `cd ~ 2>/dev/null || cd "${TMPDIR:-/tmp}"`
	switch rest, home := strings.CutPrefix(dir, "~/"); {
	case home:
		to = "cd ~/" + config.QuoteWord(rest)
	case dir == "~":
		to = "cd ~"
	case dir != "":
		to = "cd " + config.QuoteWord(dir)
	case files:
		to = `cd "${BIREME_FILES_DIR:-$HOME}" 2>/dev/null || cd "${TMPDIR:-/tmp}"`
	}
	return to + " || exit\nexport DSTACK_WORKING_DIR=\"$PWD\"\n"
}

// hostfile writes the nodes' addresses where MPI looks for them, with the GPUs of each as its slots.
const hostfile = `export DSTACK_MPI_HOSTFILE="${TMPDIR:-/tmp}/mpi-hostfile-$SLURM_JOB_ID"
while IFS= read -r host; do
	if [ "${DSTACK_GPUS_PER_NODE:-0}" -gt 0 ]; then echo "$host slots=$DSTACK_GPUS_PER_NODE"; else echo "$host"; fi
done >"$DSTACK_MPI_HOSTFILE" <<HOSTS
$DSTACK_NODES_IPS
HOSTS
`
