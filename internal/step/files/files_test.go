package files

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/parcel"
)

func pack(t *testing.T, text string) []byte {
	t.Helper()
	src := filepath.Join(t.TempDir(), "one")
	if err := os.WriteFile(src, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	data, err := parcel.Pack([]parcel.Item{{Local: src, Path: "~/d/one"}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func there(path string) bool { _, err := os.Lstat(path); return err == nil }

func plainly(_ Owner, f func() error) error { return f() }

// TestRecords: a file that two jobs use goes with the later one, whichever made it; after a death of the keeper
// everything goes.
func TestRecords(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), "files")
	file := filepath.Join(home, "d", "one")
	r := Open(dir, plainly)
	a, b := wire.JobRef{Job: 1, Attempt: 1}, wire.JobRef{Job: 2, Attempt: 1}
	lay := func(ref wire.JobRef, text string) error {
		_, err := r.Lay(ref, Owner{}, pack(t, text), home)
		return err
	}
	for _, ref := range []wire.JobRef{a, b, a} {
		if err := lay(ref, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := lay(wire.JobRef{Job: 3, Attempt: 1}, "y"); err == nil {
		t.Error("another file of that name was laid out")
	}
	if err := r.Remove(wire.JobRef{Job: 3, Attempt: 1}); err != nil {
		t.Error(err)
	}
	if err := r.Remove(a); err != nil || !there(file) {
		t.Errorf("the other job's file is there: %v, %v", there(file), err)
	}
	if err := r.Remove(b); err != nil || there(filepath.Dir(file)) {
		t.Errorf("it is left: %v, %v", there(filepath.Dir(file)), err)
	}
	if err := r.Remove(b); err != nil {
		t.Errorf("a job without files: %v", err)
	}
	if err := lay(a, "x"); err != nil {
		t.Fatal(err)
	}
	if err := Open(dir, plainly).RemoveAll(t.Context()); err != nil || there(filepath.Dir(file)) {
		t.Errorf("left after a death: %v, %v", there(filepath.Dir(file)), err)
	}
}

// TestCutRecord: a keeper that died while it wrote left part of a line.
func TestCutRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made := filepath.Join(t.TempDir(), "made")
	if err := os.WriteFile(made, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"1.1": "", "2.1": `{"iden`, "3.1": "{}\n+\"" + made + "\"\n+\"/tm",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Open(dir, plainly).RemoveAll(t.Context()); err != nil || there(made) {
		t.Errorf("%v, %v", there(made), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestOwnFolder: where another file is in the way, all relative files of a job are in a folder of its own.
func TestOwnFolder(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), "files")
	src := t.TempDir()
	parcelOf := func(text string) []byte {
		t.Helper()
		var items []parcel.Item
		for _, name := range []string{"a", "one"} {
			if err := os.WriteFile(filepath.Join(src, name), []byte(name+text), 0o644); err != nil {
				t.Fatal(err)
			}
			items = append(items, parcel.Item{Local: filepath.Join(src, name), Path: name})
		}
		data, err := parcel.Pack(items)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if err := os.WriteFile(filepath.Join(home, "one"), []byte("the user's"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := Open(dir, plainly)
	for job := core.JobID(1); job <= 2; job++ {
		ref := wire.JobRef{Job: job, Attempt: 1}
		for range 2 { // a second step of the job finds the same
			in, err := r.Lay(ref, Owner{}, parcelOf(strconv.FormatInt(int64(job), 10)), home)
			text, rerr := os.ReadFile(filepath.Join(in, "one"))
			if err != nil || rerr != nil || in == home || string(text) != "one"+strconv.FormatInt(int64(job), 10) {
				t.Fatalf("job %d: %s has %q, %v, %v", job, in, text, err, rerr)
			}
		}
	}
	if there(filepath.Join(home, "a")) {
		t.Error("a file is left where the others could not be")
	}
	for job := core.JobID(1); job <= 2; job++ {
		if err := r.Remove(wire.JobRef{Job: job, Attempt: 1}); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(home)
	if err != nil || len(left) != 1 || left[0].Name() != "one" {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestRemoveAllOfHungHome: a home that does not answer holds up neither the caller nor other users' files, and its
// files go when it answers again.
func TestRemoveAllOfHungHome(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "files")
	homes := map[uint32]string{1: t.TempDir(), 2: t.TempDir()}
	before := Open(dir, plainly)
	for uid, home := range homes {
		for n := range 3 { // jobs that share their file
			ref := wire.JobRef{Job: core.JobID(10*uid) + core.JobID(n), Attempt: 1}
			if _, err := before.Lay(ref, Owner{Identity: wire.Identity{UID: uid}}, pack(t, "x"), home); err != nil {
				t.Fatal(err)
			}
		}
	}
	answers, gone := make(chan struct{}), make(chan uint32, 6)
	r := Open(dir, func(o Owner, f func() error) error {
		if o.Identity.UID == 1 {
			<-answers
		}
		err := f()
		gone <- o.Identity.UID
		return err
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for range 3 {
			<-gone // of user 2: nobody else's come before answers
		}
		cancel()
	}()
	if err := r.RemoveAll(ctx); err == nil || !strings.Contains(err.Error(), "files of jobs 10.1") {
		t.Errorf("it says %v", err)
	}
	if there(filepath.Join(homes[2], "d")) {
		t.Error("the files of another user are left")
	}
	close(answers)
	for range 3 {
		<-gone
	}
	if there(filepath.Join(homes[1], "d")) {
		t.Error("the files are left after the home answered")
	}
}
