//go:build e2e

package site

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const units = "../../packaging/systemd"

// systemd has nothing to say against the units, and takes the server for well confined.
func TestUnits(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatalf("%v: scripts/prereqs.sh installs it", err)
	}
	files, err := filepath.Glob(units + "/*.service")
	if err != nil || len(files) != 3 {
		t.Fatalf("units: %v, %v", files, err)
	}
	for _, f := range files {
		if out, err := exec.Command(analyze, "verify", "--man=no", f).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze verify %s: %v\n%s", f, err, out)
		}
	}
	server := filepath.Join(units, "biremed-server.service")
	out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=30", "--no-pager", server).
		CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Overall exposure level") {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
	users, err := filepath.Abs(filepath.Join(units, "bireme.sysusers.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-sysusers", "--dry-run", users).CombinedOutput(); err != nil {
		t.Errorf("systemd-sysusers: %v\n%s", err, out)
	}
}
