package rest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/errno"
	"bireme.dev/bireme/internal/slurm/schema"
)

func badField(name, value string) error {
	return fail(http.StatusBadRequest, errno.Parsing, "Failure during parsing",
		name+": "+strconv.Quote(value)+" is not known here")
}

// submitJob takes a job, or the components of a het job.
func submitJob(c *Call) (*schema.Record, error) {
	in, err := c.read()
	if err != nil {
		return nil, err
	}
	parts := components(in, "jobs")
	if len(parts) == 0 {
		return nil, fail(http.StatusBadRequest, errno.Description,
			"Jobs description entry not found, empty or not dictionary or list", "neither job nor jobs is given")
	}
	script := cmp.Or(in.Text("script"), parts[0].Text("script"))
	done, err := c.submit(parts, script, slices.Contains(parts[0].List("flags"), "EXTERNAL_JOB"))
	if err != nil {
		return nil, err
	}
	msg := schema.New("job_submit_response_msg").Set("job_id", int64(done.ID)).Set("step_id", "batch").
		Set("error", "No error").Set("job_submit_user_msg", done.Warning)
	return schema.New("openapi_job_submit_response").Set("result", msg).Set("job_id", int64(done.ID)).
		Set("step_id", "batch").Set("job_submit_user_msg", done.Warning), nil
}

// allocateJob makes an allocation that stays until it is canceled or its time is over.
func allocateJob(c *Call) (*schema.Record, error) {
	in, err := c.read()
	if err != nil {
		return nil, err
	}
	parts := components(in, "hetjob")
	if len(parts) == 0 {
		return nil, fail(http.StatusBadRequest, errno.Description,
			"Jobs description entry not found, empty or not dictionary or list", "neither job nor hetjob is given")
	}
	done, err := c.submit(parts, "", true)
	if err != nil {
		return nil, err
	}
	return schema.New("openapi_job_alloc_resp").Set("job_id", int64(done.ID)).
		Set("job_submit_user_msg", done.Warning), nil
}

func components(in schema.Input, list string) []schema.Input {
	if one, ok := in["job"].(schema.Input); ok && len(one) > 0 {
		return []schema.Input{one}
	}
	parts, _ := in[list].([]schema.Input)
	return parts
}

// maxComponents bounds a het job, as Slurm does.
const maxComponents = 128

// submit converts descriptions and hands the job in. open: an allocation without a script.
func (c *Call) submit(parts []schema.Input, script string, open bool) (*client.Submitted, error) {
	if len(parts) > maxComponents {
		return nil, fail(http.StatusBadRequest, errno.Parsing, "Failure during parsing",
			"a het job has at most "+strconv.Itoa(maxComponents)+" components")
	}
	first := parts[0]
	env := first.List("environment")
	switch {
	case open:
	case len(env) == 0:
		return nil, fail(http.StatusBadRequest, errno.Environment, "Environment is missing in job",
			"job.environment must have at least one variable")
	case strings.TrimSpace(script) == "":
		return nil, fail(http.StatusBadRequest, 2009, "Job script not specified", "neither script nor job.script is given")
	default:
		if bad := slurm.CheckScript([]byte(script)); bad != nil {
			return nil, fail(http.StatusBadRequest, errno.Unspecified, bad[0], strings.Join(bad, " "))
		}
	}
	for _, e := range env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return nil, badField("environment", e)
		}
	}
	ask := &client.Submit{Script: script, Env: append(slices.Clone(env), limits(first)...)}
	for i, part := range parts {
		spec, err := c.spec(part, i, open)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			ask.Spec = *spec
		} else {
			if spec.Extra == nil {
				spec.Extra = &core.Extra{}
			}
			spec.Extra.HetApart = true // as of sbatch: no two components share a node
			ask.Components = append(ask.Components, *spec)
		}
	}
	return c.api.Client.Submit(c.Context, ask)
}

// spec reads one description as sbatch reads its options.
func (c *Call) spec(in schema.Input, at int, open bool) (*core.Spec, error) {
	path := "#/job"
	if at > 0 {
		path = "#/jobs[" + strconv.Itoa(at) + "]"
	}
	dir := in.Text("current_working_directory")
	if dir == "" && at == 0 {
		return nil, fail(http.StatusBadRequest, errno.Unspecified,
			"Job cannot be submitted without the current working directory specified.",
			"job.current_working_directory is not given")
	}
	d := &description{in: in, used: map[string]bool{
		"environment": true, "script": true, "argv": true, "rlimits": true, "admin_comment": true, "job_id": true,
	}, now: c.api.Now()}
	args, err := d.options()
	if err != nil {
		return nil, err
	}
	r := slurm.NewRequest(slurm.Sbatch, c.api.Now(), cmp.Or(dir, "/"))
	if _, err := r.Args(args); err != nil {
		return nil, err
	}
	warnings, err := r.Finish()
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		c.warnings = append(c.warnings, schema.Note{Path: path, Text: strings.TrimPrefix(w, "sbatch: ")})
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !d.used[name] && !empty(in[name]) {
			c.unused(path, name)
		}
	}
	s := &r.Spec
	s.Kind = core.Batch
	if open {
		s.Kind = core.Interactive
		if s.Extra == nil {
			s.Extra = &core.Extra{}
		}
		s.Extra.Open = true
	}
	if s.Name == "" {
		s.Name = "openapi"
	}
	if argv := in.List("argv"); len(argv) > 1 {
		s.Args = argv[1:]
	}
	s.From = core.Origin{Host: "slurmrestd", Dir: dir, Line: "REST " + c.Version.String()}
	if note := in.Text("admin_comment"); note != "" {
		if s.Extra == nil {
			s.Extra = &core.Extra{}
		}
		kept := s.Extra.Keep()
		if kept.Slurm == nil {
			kept.Slurm = map[string]string{}
		}
		kept.Slurm["admin-comment"] = note
	}
	if s.IO.Stdout == "" && !open {
		s.IO.Stdout = "slurm-%j.out"
		if s.Array != "" {
			s.IO.Stdout = "slurm-%A_%a.out"
		}
	}
	return s, nil
}

// empty reports whether a field was given without saying anything.
func empty(value any) bool {
	switch x := value.(type) {
	case string:
		return x == ""
	case bool:
		return !x
	case schema.Number:
		return !x.IsSet() || !x.IsInfinite() && x.Whole() == 0
	case []string:
		return len(x) == 0
	case schema.Input:
		return len(x) == 0
	}
	return false
}

// limits are the resource limits of a description, as the environment carries them.
func limits(in schema.Input) (env []string) {
	set, _ := in["rlimits"].(schema.Input)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		switch n := set.Number(name); {
		case n.IsInfinite():
			env = append(env, "SLURM_RLIMIT_"+strings.ToUpper(name)+"=-1")
		case n.IsSet() && n.Whole() >= 0:
			env = append(env, "SLURM_RLIMIT_"+strings.ToUpper(name)+"="+strconv.FormatInt(n.Whole(), 10))
		}
	}
	return env
}
