package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack"
	"bireme.dev/bireme/internal/dstack/config"
)

var rewrite = flag.Bool("rewrite", false, "write the results into testdata; then read the diff")

// caller is the environment of the person who applies in tests.
func caller(name string) (string, bool) {
	v, ok := map[string]string{"TOKEN": "hunter2", "EMPTY": ""}[name]
	return v, ok
}

// apply does what the native command does with a file, in a project with that runtime.
func apply(src []byte, runtime string, args ...string) (*client.Submit, error) {
	c, err := config.Read(src)
	if err != nil {
		return nil, err
	}
	if err := CheckKind(c); err != nil {
		return nil, err
	}
	if c.Run() == nil {
		return nil, errors.New("not a run")
	}
	if err := NameOf(c, dstack.CheckName); err != nil {
		return nil, err
	}
	if err := CheckRuns(c); err != nil {
		return nil, err
	}
	if err := c.Complete(config.Options{Lookup: caller, Args: args}); err != nil {
		return nil, err
	}
	Modest(c)
	s := &Spec{Configuration: *c}
	if !s.Contained(runtime) {
		if err := CheckProcess(c); err != nil {
			return nil, err
		}
	}
	name := c.Name()
	if name == "" {
		name = "swift-oar-1"
	}
	sub, err := s.Submit(Options{
		Name: name, Runtime: runtime, Now: time.Unix(1_800_000_000, 0).UTC(),
		Secret: func(name string) (string, error) { return "${{ secrets." + name + " }}", nil },
		Job:    func(run string) (string, error) { return "7", nil },
	})
	if err == nil {
		sub.Strict = !s.Waits()
	}
	return sub, err
}

// TestTranscripts applies every NAME.yml of testdata/*.txtar and compares with the NAME.want behind it: the submission
// as JSON and the script, or the error.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for _, f := range ar.Files {
				want[f.Name] = string(f.Data)
			}
			out := &txtar.Archive{Comment: ar.Comment}
			for _, f := range ar.Files {
				base, isIn := strings.CutSuffix(f.Name, ".yml")
				if !isIn {
					continue
				}
				got := transcript(f.Data)
				out.Files = append(out.Files, f, txtar.File{Name: base + ".want", Data: []byte(got)})
				if diff := cmp.Diff(want[base+".want"], got); diff != "" && !*rewrite {
					t.Errorf("%s (-want +got):\n%s", f.Name, diff)
				}
			}
			if *rewrite {
				if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func transcript(src []byte) string {
	sub, err := apply(src, core.RuntimeProcess, "--lr", "0.1", "it's")
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	script := sub.Script
	sub.Script = ""
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(sub); err != nil {
		return "error: " + err.Error() + "\n"
	}
	return b.String() + script
}

// FuzzApply: no input makes the conversion panic, and what it accepts can run.
func FuzzApply(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		if ar, err := txtar.ParseFile(file); err == nil {
			for _, in := range ar.Files {
				f.Add(in.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, runtime := range []string{core.RuntimeProcess, core.RuntimeContainer} {
			sub, err := apply(src, runtime)
			if err == nil && (!strings.HasPrefix(sub.Script, "#!/") && sub.Script != ownScript || sub.Spec.Shape.NodesMin < 1) {
				t.Errorf("accepted, but not runnable: %+v", sub)
			}
		}
	})
}

// TestTotals: what GPUs are to have together is each one's share of it.
func TestTotals(t *testing.T) {
	t.Parallel()
	for gpu, want := range map[string]string{
		"{count: 2, total_memory: 160GB..}":                    "2 of 80 GB or more",
		"{count: 4, memory: 40GB.., total_memory: 96GB..}":     "4 of 40 GB or more",
		"{total_memory: 80GB}":                                 "1 of 80 GB",
		"{memory: 40GB.., total_memory: 160GB..}":              "4 of 40 GB or more",
		"{count: 1..2, memory: 40GB.., total_memory: 160GB..}": "2 of 80 GB or more",
		"{count: 2, total_memory: ..96GB}":                     "2 of at most 48 GB",
		"{name: H100, compute_capability: 9.0}":                "1 of H100, compute capability 9.0 or more",
		"{compute_capability: [7, 5]}":                         "1 of compute capability 7.5 or more",
		`{compute_capability: "8.9", vendor: nvidia}`:          "1 of nvidia, compute capability 8.9 or more",
	} {
		sub, err := apply([]byte("type: task\ncommands: [x]\nresources: {gpu: "+gpu+"}\n"), core.RuntimeProcess)
		if err != nil {
			t.Errorf("%s: %v", gpu, err)
			continue
		}
		if got := fmt.Sprintf("%d of %s", sub.Spec.Shape.Gres[0].Count, sub.Spec.Extra.GPU); got != want {
			t.Errorf("%s: %s, want %s", gpu, got, want)
		}
	}
}

// TestScriptsRun gives the made scripts to a real shell: what counts is what they do.
func TestScriptsRun(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "a b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		yaml string
		out  string
		code int
	}{
		"in turn":            {"commands: [echo one, echo two]", "one\ntwo\n", 0},
		"stops at a failure": {"commands: [echo one, exit 3, echo never]", "one\n", 3},
		"false stops too":    {"commands: ['false', echo never]", "", 1},
		"one shell":          {"commands: [X=5, export Y=6, cd /, 'echo $X $(sh -c \"echo \\$Y\") $PWD']", "5 6 /\n", 0},
		"comment":            {"commands: ['echo one # and', '# nothing', echo two]", "one\ntwo\n", 0},
		"background":         {"commands: ['echo one &', wait, echo two]", "one\ntwo\n", 0},
		"here-document":      {"commands:\n  - |\n    cat <<EOF\n    in $((1+1))\n    EOF\n  - echo out", "in 2\nout\n", 0},
		"block":              {"commands:\n  - |\n    if true; then\n      echo yes\n    fi\n  - echo end", "yes\nend\n", 0},
		"dollars":            {"commands: ['echo $$HOME']", home + "\n", 0},
		"home":               {"commands: ['echo $PWD']", home + "\n", 0},
		"below home":         {"working_dir: ~/a b\ncommands: ['echo $DSTACK_WORKING_DIR']", home + "/a b\n", 0},
		"signal": {
			"checkpoint: {signal: USR1, grace: 1m}\ncommands: ['kill -USR1 $$$$', echo alive]", "alive\n", 0,
		},
		"saved file":  {"checkpoint: {saved_file: state}\ncommands: [wait, echo one]", "one\n", 0},
		"dir missing": {"working_dir: /no/such/dir\ncommands: [echo never]", "", -1},
	} {
		for _, shell := range []string{"sh", "bash"} {
			t.Run(name+"/"+shell, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(shell); err != nil {
					t.Fatal(err)
				}
				sub, err := apply([]byte("type: task\nshell: "+shell+"\n"+tc.yaml+"\n"), core.RuntimeProcess)
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), shell, "-s")
				cmd.Stdin = strings.NewReader(sub.Script)
				cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
				var out bytes.Buffer
				cmd.Stdout = &out
				code := 0
				var exit *exec.ExitError
				if err := cmd.Run(); errors.As(err, &exit) {
					code = exit.ExitCode()
				} else if err != nil {
					t.Fatal(err)
				}
				if out.String() != tc.out || code != tc.code && !(tc.code < 0 && code > 0) {
					t.Errorf("exit status %d, output %q; want %d, %q\n%s", code, out.String(), tc.code, tc.out, sub.Script)
				}
			})
		}
	}
}

// TestRuntime: image, python, nvcc and docker mean a container; else runtime says it, else the project.
func TestRuntime(t *testing.T) {
	t.Parallel()
	const process, container = core.RuntimeProcess, core.RuntimeContainer
	for name, tc := range map[string]struct {
		yaml    string
		project string
		want    string // the runtime, and the image of a container
		err     string
	}{
		"the project: processes":    {"", process, process, ""},
		"the project: containers":   {"", container, container + " " + baseImage, ""},
		"process in such a project": {"runtime: process", container, process, ""},
		"container in the other":    {"runtime: container", process, container + " " + baseImage, ""},
		"image":                     {"image: box:1", process, container + " box:1", ""},
		"python":                    {"python: 3.12", process, container + " " + baseImage, ""},
		"nvcc":                      {"nvcc: true", process, container + " " + develImage, ""},
		"docker":                    {"docker: true", process, container + " " + dindImage, ""},
		"image and process": {
			"runtime: process\nimage: box:1", container, "",
			"needs a container; it cannot be combined with runtime: process",
		},
		"what needs one has one":          {"privileged: true", container, container + " " + baseImage, ""},
		"what needs one, among processes": {"privileged: true", process, "", "privileged: needs a container"},
		"what needs one, said process": {
			"runtime: process\nprivileged: true", container, "",
			"privileged: needs a container",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub, err := apply([]byte("type: task\ncommands: [id]\n"+tc.yaml+"\n"), tc.project)
			got := ""
			if err == nil {
				got = sub.Spec.Runtime
				if c := sub.Spec.More().Container; c != nil {
					got += " " + c.Image
				}
			}
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q %v, want %q", got, err, tc.want)
			}
		})
	}
}

// Groups of nodes are containers; as processes they are refused with their place.
func TestNativeGroups(t *testing.T) {
	t.Parallel()
	const src = "type: task\ngroups:\n  - {commands: [a]}\n  - {nodes: 2, commands: [b]}\n"
	sub, err := apply([]byte(src), core.RuntimeContainer)
	if err != nil || len(sub.Components) != 1 {
		t.Errorf("%+v %v", sub, err)
	}
	if _, err := apply([]byte(src), core.RuntimeProcess); err == nil ||
		!strings.Contains(err.Error(), "line 3, column 3: task.groups: needs a container") {
		t.Errorf("as processes: %v", err)
	}
}

// What a native command made is listed for stock clients, which refuse a null where they expect a list.
func TestNativeRunsHaveLists(t *testing.T) {
	c, err := config.Read([]byte("type: task\ncommands: [date]\n"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := (&Spec{Configuration: *c}).Completed().JSON()
	if err != nil || !strings.Contains(string(raw), `"file_archives":[]`) {
		t.Errorf("%s, %v", raw, err)
	}
}
