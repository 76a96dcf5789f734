package dstack

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	task, err := Parse("x.yml",
		[]byte("type: task\nimage: a\nfiles: [a.txt, 'src:/app', '~/.vimrc', ../up, {local_path: 'a:b', path: c}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []File{{"a.txt", "a.txt"}, {"src", "/app"}, {"~/.vimrc", "~/.vimrc"}, {"../up", "../up"}, {"a:b", "c"}}
	if diff := cmp.Diff(want, task.Files); diff != "" {
		t.Error(diff)
	}
	for _, none := range []string{"files:\n", "files: []\n"} {
		if _, err := Parse("x.yml", []byte("type: task\nruntime: process\ncommands: [a]\n"+none)); err != nil {
			t.Errorf("%q: %v", none, err)
		}
	}
}
