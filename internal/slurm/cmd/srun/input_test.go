package srun

import (
	"testing"

	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/wire"
)

// A file for standard input that is not there fails srun before its tasks run, as in Slurm.
func TestInputThatIsNotThere(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 7, [][]int32{{0}}, func(c *wire.Conn, _ func() string) {
		say(c, 0, 1, "step\n")
		exit(c, "n001", 0, 0, 0)
		last(c, "n001")
	})
	got := p.Run(t, "srun", Run, []string{"--input=nosuch", "hostname"}, func(*cmd.World) {})
	want := "srun: error: Could not open stdin file: No such file or directory\n"
	if got.Code != 1 || got.Out != "" || got.Err != want || p.released == nil {
		t.Errorf("%+v, released %v", got, p.released)
	}
}
