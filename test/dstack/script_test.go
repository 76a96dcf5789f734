//go:build e2e

package dstack

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/test/cluster"
)

const head = `resources: {cpu: 1, memory: 64MB.., disk: 0..}
image: box:1
`

// TestScript is a working day with the stock CLI: a project is added, runs are planned, applied attached and detached,
// listed, read, updated, stopped and deleted, in containers on a local node.
func TestScript(t *testing.T) {
	t.Parallel()
	c, url, token := start(t)
	s, root := newSession(t, c), c.Root()
	s.project(url, token)
	s.tasks(root)
	s.changes()
	s.trouble()
	s.others(root)
	t.Logf("%d commands", s.n)
	if s.n < 60 {
		t.Errorf("only %d commands", s.n)
	}
}

// start makes a cluster of one node with a container engine, and a project whose runs are containers.
func start(t *testing.T) (c *cluster.Cluster, url, token string) {
	t.Helper()
	api, door := freePort(t), freePort(t)
	settings := filepath.Join(t.TempDir(), "config.yml")
	text := "volumes: [{class: fast, driver: shared, path: " + t.TempDir() + "}]\n"
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c = cluster.Start(t, cluster.Options{
		Args: []string{"--engine", docker.Socket, "--cpus", "4", "--config", settings},
		Set:  []string{"dstack.listen=" + api, "ssh.listen=" + door, "timers.grace=5s"},
	})
	root := c.Root()
	root.Run("bireme", "projects", "add", "main", "--runtime", "container")
	root.Run("bireme", "projects", "member", "main", "root", "--role", "admin")
	var made client.NewTokenMade
	if err := json.Unmarshal([]byte(root.Run("bireme", "token", "create", "--for", "dstack", "--scope",
		"read,submit,admin", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	return c, "http://" + api, made.Secret
}

func (s *session) project(url, token string) {
	s.want(0, "--version")
	s.want(1, "project add --name main --url "+url+" --token nonsense -y", "!updated")
	s.want(1, "project add --name nowhere --url "+url+" --token "+token+" -y", "404")
	s.want(0, "project add --name main --url "+url+" --token "+token+" -y")
	s.want(0, "project list", "main", url)
	s.want(0, "project list -v", "root")
	s.want(0, "project set-default main")
	s.want(0, "ps", "NAME", "STATUS")
	s.want(0, "fleet", "main")
	s.want(0, "fleet list -v", "main", "instance=0", "idle")
	s.want(0, "offer", "ssh (remote)", "idle")
	s.want(0, "offer --cpu 1 --memory 1GB.. --disk 0..", "idle")
	s.want(0, "offer --json", `"total_offers":1`)
	s.want(0, "offer --gpu A100", "No matching instance offers available")
	s.want(0, "offer --group-by gpu", "Group by")
}

func (s *session) tasks(root *cluster.Person) {
	s.file("tick.dstack.yml", head+`type: task
name: tick
commands:
  - echo first line
  - for i in 1 2 3; do echo tick $i; sleep 0.3; done
`)
	s.want(0, "apply -y -f tick.dstack.yml", "task (nodes=1)", "idle", "provisioning completed", "first line", "tick 3",
		"Exited (0)")
	s.want(0, "ps", "tick", "exited (0)")
	s.want(0, "ps -a", "tick", "ssh (remote)", "exited (0)")
	s.want(0, "ps -a -v", "RESOURCES", "INSTANCE TYPE", "cpu=", "exited (0)")
	s.want(0, "ps -a --json", `"status":"done"`, `"termination_reason":"all_jobs_done"`)
	s.want(0, "ps -n 1", "tick")
	s.want(0, "run get tick --json", `"run_name": "tick"`, `"exit_status": 0`)
	s.want(0, "logs tick", "first line\n", "tick 3\n")
	s.want(0, "logs tick --since 1h", "first line\n")
	s.want(0, "logs tick --replica 0 --job 0", "tick 2")
	s.want(0, "logs -d tick", "Job started", "done_by_runner")
	s.want(1, "logs nobody", "Run nobody not found")
	s.want(1, "run get nobody --json")
	s.want(0, "metrics tick")

	s.file("sleeper.dstack.yml", head+"type: task\nname: sleeper\ncommands: [echo asleep, sleep 3000]\n")
	s.want(0, "apply -y -d -f sleeper.dstack.yml", "Run sleeper submitted, detaching...")
	s.until("running", "ps")
	s.want(0, "ps -v", "sleeper", "running")
	s.want(0, "run get sleeper --json", `"status": "running"`, `"attached_ssh_command"`)
	s.until("asleep", "logs sleeper")
	if jobs := root.Run("squeue", "-h", "-o", "%j %T"); !strings.Contains(jobs, "sleeper RUNNING") {
		s.t.Errorf("squeue: %s", jobs)
	}
	s.want(0, "event", "sleeper")
	s.want(0, "fleet list -v", "instance=0")

	s.file("plain.dstack.yml", head+"type: task\ncommands: [echo plain]\n")
	out := s.want(0, "apply -y -d -f plain.dstack.yml", "submitted, detaching...")
	second := s.want(0, "apply -y -d -f plain.dstack.yml", "submitted, detaching...")
	if name(out) == name(second) {
		s.t.Errorf("two runs are called %s", name(out))
	}
	s.until("plain", "logs "+name(out))
	s.file("env.dstack.yml", head+"type: task\nname: vars\nenv: [COLOR=teal, GIVEN]\nworking_dir: /tmp\n"+
		"commands: ['echo $COLOR $GIVEN in $(pwd) as $DSTACK_RUN_NAME', 'echo ${{ run.args }}']\n")
	s.want(0, "apply -y -f env.dstack.yml -e GIVEN=granite one two", "teal granite in /tmp as vars", "one two")
	s.want(1, "apply -y -f env.dstack.yml", "GIVEN")
}

// name is that of a run that was just submitted.
func name(out string) string {
	_, rest, _ := strings.Cut(out, "\nRun ")
	word, _, _ := strings.Cut(rest, " ")
	return word
}

func (s *session) changes() {
	s.want(0, "apply -y -d -f sleeper.dstack.yml", "Detected no changes", "Use --force")
	if out, code := s.try("n\n", "apply", "-d", "-f", "sleeper.dstack.yml"); code != 0 ||
		!strings.Contains(out, "Stop and override the run?") || !strings.Contains(out, "Exiting") {
		s.t.Errorf("declined: %d\n%s", code, out)
	}
	s.file("sleeper.dstack.yml", head+"type: task\nname: sleeper\npriority: 40\ncommands: [echo asleep, sleep 3000]\n")
	s.want(0, "apply -y -d -f sleeper.dstack.yml", "can be updated in-place", "priority", "Run sleeper updated")
	s.want(0, "run get sleeper --json", `"deployment_num": 1`, `"priority": 40`)
	s.file("sleeper.dstack.yml", head+"type: task\nname: sleeper\ncommands: [echo deeper, sleep 3000]\n")
	s.want(0, "apply -y -d -f sleeper.dstack.yml", "cannot be updated in-place", "commands", "Run sleeper submitted")
	s.until("deeper", "logs sleeper")
	s.want(1, "delete -y -f sleeper.dstack.yml", "Cannot delete active runs")
	if out, code := s.try("n\n", "stop", "sleeper"); code != 0 || !strings.Contains(out, "stop the run?") {
		s.t.Errorf("not stopped: %d\n%s", code, out)
	}
	s.want(0, "stop -y sleeper")
	s.until(`"status": "terminated"`, "run get sleeper --json")
	s.want(0, "ps -a", "stopped")
	s.want(0, "stop -y sleeper")
	s.want(1, "stop -y nobody", "nobody")
	s.want(1, "attach sleeper")
	s.want(0, "delete -y -f sleeper.dstack.yml")
	s.want(1, "run get sleeper --json")
	s.want(0, "apply -y -d -f sleeper.dstack.yml", "Run sleeper submitted")
	s.until(`"status": "running"`, "run get sleeper --json")
	s.want(0, "stop -y -x sleeper")
	s.until("aborted", "ps -a")
}

func (s *session) trouble() {
	s.file("broken.dstack.yml", head+"type: task\nname: broken\ncommands: [echo oops, exit 7]\n")
	s.want(1, "apply -y -f broken.dstack.yml", "oops", "Exited (7)")
	s.want(0, "ps -a", "exited (7)")
	s.file("vast.dstack.yml", "type: task\nname: vast\nimage: box:1\ncommands: [\":\"]\n"+
		"resources: {cpu: 900, disk: 0..}\n")
	s.want(1, "apply -y -f vast.dstack.yml", "No matching instance offers available", "no capacity", "900 CPU")
	s.file("away.dstack.yml", head+"type: task\nname: away\nfleets: [elsewhere]\ncommands: [\":\"]\n")
	s.want(0, "apply -y -d -f away.dstack.yml", "submitted")
	s.want(0, "ps -a -v", "no fleets")
	s.file("pair.dstack.yml", head+"type: task\nname: pair\nnodes: 2\ncommands: [\":\"]\n")
	s.want(0, "apply -y -d -f pair.dstack.yml", "task (nodes=2)")
	s.want(0, "ps -a", "job=0", "job=1")
	s.file("short.dstack.yml", head+"type: task\nname: short-leash\nmax_duration: 1s\ncommands: [sleep 3000]\n")
	s.want(0, "apply -y -d -f short.dstack.yml", "Max duration   1s")
	s.until("max duration exceeded", "ps -a -v")
	s.file("key.dstack.yml", head+"type: task\nname: key\ncomands: [\":\"]\n")
	s.want(1, "apply -y -f key.dstack.yml", "comands")
	s.file("Name.dstack.yml", head+"type: task\nname: Bad_Name\ncommands: [\":\"]\n")
	s.want(1, "apply -y -f Name.dstack.yml", "should match regex")
	s.want(1, "apply -y -f none.dstack.yml")
	s.file("sched.dstack.yml", head+"type: task\nname: nightly\nschedule: {cron: \"15 3 * * *\"}\ncommands: [\":\"]\n")
	s.want(0, "apply -y -d -f sched.dstack.yml", "submitted")
	s.want(0, "ps -v", "nightly", "pending")
	s.want(0, "run get nightly --json", "T03:15:00")
	s.want(0, "stop -y nightly")
}

// volumes: the stock client knows no classes of ours, and names one as a storage class of Kubernetes.
func (s *session) volumes() {
	s.file("vol.dstack.yml", "type: volume\nname: data\nbackend: kubernetes\nstorage_class_name: fast\n"+
		"access_modes: [ReadWriteMany]\nsize: 1GB\n")
	s.want(0, "apply -y -f vol.dstack.yml")
	s.want(0, "volume list -v", "data", "active")
	s.want(0, "volume get data --json", `"storage_class_name": "fast"`)
	s.file("mounts.dstack.yml", head+"type: task\nname: mounts\nvolumes: [\"data:/data\"]\n"+
		"commands: [\"echo kept >>/data/log\", \"cat /data/log\"]\n")
	s.want(0, "apply -y -f mounts.dstack.yml", "kept")
	s.file("novol.dstack.yml", head+"type: task\nname: novol\nvolumes: [\"absent:/data\"]\ncommands: [\":\"]\n")
	s.want(1, "apply -y -d -f novol.dstack.yml", "there is no volume absent")
	s.want(0, "volume delete -y data")
	s.file("cloud.dstack.yml", "type: volume\nname: cloudy\nbackend: aws\nregion: here\nsize: 1GB\n")
	s.want(1, "apply -y -f cloud.dstack.yml", "no cloud backends")
}

func (s *session) others(root *cluster.Person) {
	s.want(0, "secret list")
	s.want(0, "secret set key hush")
	s.want(0, "secret list", "key")
	s.file("secret.dstack.yml", head+"type: task\nname: uses-secret\nenv: {KEY: \"${{ secrets.key }}\"}\n"+
		"commands: ['echo it is $KEY']\n")
	s.want(0, "apply -y -f secret.dstack.yml", "it is hush")
	s.file("nosecret.dstack.yml", head+"type: task\nname: no-secret\nenv: {KEY: \"${{ secrets.absent }}\"}\n"+
		"commands: [\":\"]\n")
	s.want(1, "apply -y -d -f nosecret.dstack.yml", "absent")
	s.want(0, "secret delete -y key")
	s.file("notes.txt", "noted\n")
	s.file("files.dstack.yml", head+"type: task\nname: with-files\nfiles: [notes.txt]\ncommands: [cat notes.txt]\n")
	s.want(0, "apply -y -f files.dstack.yml", "noted")
	s.volumes()
	s.want(0, "gateway list")
	s.want(1, "apply -y -f svc.dstack.yml")
	id := root.Sbatch("--account=main", "--wrap", "sleep 3000")
	s.until("job-"+id, "ps")
	s.want(0, "stop -y job-"+id)
	s.want(0, "apply -y -d -f sleeper.dstack.yml", "submitted")
	s.until("running", "ps")
	root.Run("scancel", "--name=sleeper")
	s.until("stopped", "ps -a -n 1")
}
