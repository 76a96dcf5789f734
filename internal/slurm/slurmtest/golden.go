package slurmtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Golden is a recording of the real program: what it printed and left with. The first line of the file, the command as
// it was typed, is left out.
func Golden(t testing.TB, name string) (text string, code int) {
	t.Helper()
	dir := filepath.Join(root(t), "internal", "slurm", "testdata", "golden")
	data, err := os.ReadFile(filepath.Join(dir, name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = strings.Cut(string(data), "\n")
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(index), "\n") {
		if f := strings.Split(line, "\t"); len(f) > 1 && f[0] == name+".txt" {
			code, _ = strconv.Atoi(f[1])
		}
	}
	return text, code
}

// root is the project's: tests run in their package's folder. The paths of source files would do only in a build that
// keeps them.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("the project's folder was not found above the test's", err)
	return ""
}

// Lines splits text without its last newline.
func Lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// Without drops the lines that hold one of the words.
func Without(text string, words ...string) string {
	var keep []string
next:
	for _, line := range Lines(text) {
		for _, w := range words {
			if strings.Contains(line, w) {
				continue next
			}
		}
		keep = append(keep, line)
	}
	return strings.Join(keep, "\n") + "\n"
}
