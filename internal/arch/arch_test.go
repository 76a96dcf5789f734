package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

const root = "../.."

// TestShape holds the sources against the rules.
func TestShape(t *testing.T) {
	t.Parallel()
	pkgs, fset, err := load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	gomod, err := os.ReadFile(path.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, complaints := range map[string][]string{
		"arrows":         checkArrows(pkgs),
		"pure rooms":     checkPure(pkgs, fset),
		"confined":       checkConfined(pkgs),
		"names":          checkNames(pkgs),
		"comments":       checkComments(pkgs),
		"sleep":          checkSleep(pkgs, fset),
		"print":          checkPrint(pkgs, fset),
		"no replacement": checkGoMod(string(gomod)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range complaints {
				t.Error(c)
			}
		})
	}
}

// TestLinked asks the go command what each program links, the standard library
// and other modules included, and shows the way to what it should not.
func TestLinked(t *testing.T) {
	t.Parallel()
	for program, rules := range unlinked {
		t.Run(path.Base(program), func(t *testing.T) {
			t.Parallel()
			imports := deps(t, program)
			for _, rule := range rules {
				if way := wayTo(imports, modulePath+"/"+program, rule.paths); way != nil {
					t.Errorf("%s: %s", strings.Join(way, " → "), rule.why)
				}
			}
		})
	}
}

// deps returns the imports of every package a program links.
func deps(t *testing.T, program string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports", "./"+program)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list %s: %v\n%s", program, err, exit.Stderr)
		}
		t.Fatalf("go list %s: %v", program, err)
	}
	imports := map[string][]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			return imports
		} else if err != nil {
			t.Fatalf("go list %s: %v", program, err)
		}
		imports[p.ImportPath] = p.Imports
	}
}

// wayTo finds a shortest chain of imports from one package to any of the
// targets or what lies below them, or nil.
func wayTo(imports map[string][]string, from string, targets []string) []string {
	came := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if within(at, targets) {
			var way []string
			for p := at; p != ""; p = came[p] {
				way = append([]string{strings.TrimPrefix(p, modulePath+"/")}, way...)
			}
			return way
		}
		for _, next := range imports[at] {
			if _, seen := came[next]; !seen {
				came[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// TestLibcMatchesSQLite: modernc.org/sqlite is generated against one release of
// modernc.org/libc and breaks in odd ways with another.
func TestLibcMatchesSQLite(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Version}} {{.GoMod}}", "modernc.org/sqlite",
		"modernc.org/libc")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -m: %v", err)
	}
	f := strings.Fields(string(out))
	if len(f) != 6 {
		t.Fatalf("go list -m printed %q", out)
	}
	gomod, err := os.ReadFile(f[2])
	if err != nil {
		t.Fatal(err)
	}
	if want := "modernc.org/libc " + f[4]; !strings.Contains(string(gomod), want+"\n") &&
		!strings.Contains(string(gomod), want+" ") {
		t.Errorf("go.mod takes modernc.org/libc %s, but modernc.org/sqlite %s was made with another: see %s", f[4],
			f[1], f[2])
	}
}
