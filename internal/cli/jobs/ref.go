package jobs

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// errStop ends a watch that has seen enough.
var errStop = errors.New("stop")

func lower(s core.JobState) string { return strings.ToLower(s.String()) }

// runPhrase is Phrase of a run's state. The API has dstack's words, which differ from those for jobs.
func runPhrase(state string) string {
	switch state {
	case "done":
		return core.Completed.Phrase()
	case "terminated":
		return core.Cancelled.Phrase()
	case "failed":
		return core.Failed.Phrase()
	}
	return "is " + state
}

// isJobID tells "12", "12_3" and "12+1" from a run's name, which starts with a letter.
func isJobID(ref string) bool {
	base, task, isTask := strings.Cut(ref, "_")
	if !isTask {
		base, task, isTask = strings.Cut(ref, "+")
	}
	_, err := strconv.ParseUint(base, 10, 63)
	if err == nil && isTask {
		_, err = strconv.ParseUint(task, 10, 31)
	}
	return err == nil
}

// findJob returns the job that ref means: a job id, the last job of the newest run of that name, or the caller's newest
// job of it.
func findJob(ctx context.Context, c *client.Client, flag, ref string) (string, error) {
	if isJobID(ref) {
		return ref, nil
	}
	in, err := app.Project(ctx, c, flag)
	if err != nil {
		return "", err
	}
	run, err := findRun(ctx, c, in, ref)
	if core.CodeOf(err) == core.NotFound {
		if id, ok := shownJob(ref); ok {
			return id, nil
		}
		if id := namedJob(ctx, c, flag, ref); id != "" {
			return id, nil
		}
	}
	if err != nil {
		return "", err
	}
	if len(run.Jobs) == 0 {
		return "", core.Errorf(core.NotFound, "run %s has no jobs", ref)
	}
	return strconv.FormatInt(int64(run.Jobs[len(run.Jobs)-1]), 10), nil
}

// shownJob is the id of a job that is shown among runs: job-12.
func shownJob(ref string) (string, bool) {
	id, ok := strings.CutPrefix(ref, "job-")
	return id, ok && isJobID(id)
}

// mostNamed is how many jobs of a name are looked through for one that belongs to no run.
const mostNamed = 100

// namedJob returns the caller's newest job of a name that no run has, the array for one of its tasks; "": there is
// none. A job of a run is found by its run, unless that was deleted.
func namedJob(ctx context.Context, c *client.Client, project, name string) string {
	me, err := c.Whoami(ctx)
	if err != nil {
		return ""
	}
	q := client.JobsQuery{
		Users: []string{string(me.User)}, Names: []string{name}, History: true, Newest: true, Limit: mostNamed,
	}
	if project != "" {
		q.Projects = []string{project}
	}
	list, err := c.Briefs(ctx, q)
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(list.Jobs, func(j client.Brief) bool { return j.Name == name && j.Run == "" })
	if i < 0 {
		return ""
	}
	if j := &list.Jobs[i]; j.Base != 0 {
		return strconv.FormatInt(int64(j.Base), 10)
	}
	return jobName(&list.Jobs[i])
}

// findRun returns the newest run of a name.
func findRun(ctx context.Context, c *client.Client, project, name string) (*client.Run, error) {
	list, err := c.Runs(ctx, project, name)
	if err != nil {
		return nil, err
	}
	var newest *client.Run
	for i := range list.Runs {
		if r := &list.Runs[i]; r.Name == name && r.Deleted == 0 && (newest == nil || r.Created > newest.Created) {
			newest = r
		}
	}
	if newest == nil {
		return nil, core.Errorf(core.NotFound, "there is no run %s%s; `bireme ps -a` lists all", name,
			inProject(project))
	}
	return newest, nil
}

func inProject(p string) string {
	if p == "" {
		return ""
	}
	return " in project " + p
}

// oneJob returns a single job by id, its record for an array.
func oneJob(ctx context.Context, c *client.Client, id string) (*client.Job, error) {
	j, _, err := jobNow(ctx, c, id)
	return j, err
}

// jobNow is oneJob with the server's time.
func jobNow(ctx context.Context, c *client.Client, id string) (*client.Job, core.Time, error) {
	list, err := c.Job(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	if len(list.Jobs) == 0 {
		return nil, 0, core.Errorf(core.NotFound, "there is no job %s", id)
	}
	return &list.Jobs[0], list.Now, nil
}

// belongs is the refusal of somebody else's job.
var belongs = regexp.MustCompile(`^job \d+ belongs to `)

// namedSo words a refusal by what the user typed: whoever named a run did not ask for a job's number.
func namedSo(err error, ref string) error {
	var e *core.Error
	if !errors.As(err, &e) || e.Code != core.Denied || isJobID(ref) || !belongs.MatchString(e.Message) {
		return err
	}
	copied := *e
	copied.Message = belongs.ReplaceAllString(e.Message, "run "+ref+" belongs to ")
	return &copied
}
