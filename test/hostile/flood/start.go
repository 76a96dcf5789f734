package flood

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Flood is an attack of all kinds at once.
type Flood struct{ attackers []*attacker }

type attacker struct {
	kind  string
	cmd   *exec.Cmd
	out   *bufio.Reader
	sent  chan struct{} // closed when it has sent as many as it was ordered
	stats chan Stats    // what it says at its end; closed without, where it says nothing
}

// Order is what is attacked by what.
type Order struct {
	Socket        string
	Program       string // where a copy of this program goes that attackers can execute
	Jobs, Streams int
	Kinds         []string        // none: all
	Own           func(*exec.Cmd) // makes a command the attacker's
}

// Start runs an attacker of each kind in its part of the cage, and waits until all are at work.
func Start(cage *Cage, o Order) (*Flood, error) {
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(o.Program, data, 0o755)
	}
	if err != nil {
		return nil, err
	}
	f := &Flood{}
	for _, kind := range Kinds {
		if len(o.Kinds) > 0 && !slices.Contains(o.Kinds, kind) {
			continue
		}
		a, err := o.start(cage, kind)
		if err != nil {
			f.Kill()
			return nil, fmt.Errorf("the flood of %s: %w", kind, err)
		}
		f.attackers = append(f.attackers, a)
	}
	return f, nil
}

func (o *Order) start(cage *Cage, kind string) (*attacker, error) {
	part, err := cage.Part(kind)
	if err != nil {
		return nil, err
	}
	count := map[string]int{Submissions: o.Jobs, Streams: o.Streams}[kind]
	cmd := exec.Command(o.Program)
	cmd.Dir, cmd.Stderr = filepath.Dir(o.Program), os.Stderr
	cmd.Env = []string{
		envSocket + "=" + o.Socket, envKind + "=" + kind, envCount + "=" + strconv.Itoa(count),
		"GOMAXPROCS=2",
	}
	o.Own(cmd)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // no flood outlives who started it
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &attacker{kind, cmd, bufio.NewReader(out), make(chan struct{}), make(chan Stats, 1)}
	if err = part.Put(cmd.Process.Pid); err == nil {
		var line string
		if line, err = a.out.ReadString('\n'); err == nil && strings.TrimSpace(line) != saysFlooding {
			err = fmt.Errorf("it said %q", line)
		}
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	go a.listen()
	return a, nil
}

// listen reads what the attacker says after its start.
func (a *attacker) listen() {
	defer close(a.stats)
	for {
		line, err := a.out.ReadString('\n')
		if err != nil {
			return
		}
		var s Stats
		if strings.TrimSpace(line) == saysSent {
			close(a.sent)
		} else if json.Unmarshal([]byte(line), &s) == nil {
			a.stats <- s
		}
	}
}

// Sent is closed when as many jobs were submitted as were ordered, accepted or not.
func (f *Flood) Sent() <-chan struct{} {
	for _, a := range f.attackers {
		if a.kind == Submissions {
			return a.sent
		}
	}
	none := make(chan struct{})
	close(none)
	return none
}

// End tells the attackers to stop and gives what became of each kind.
func (f *Flood) End() (map[string]Stats, error) {
	var errs []error
	for _, a := range f.attackers {
		errs = append(errs, a.cmd.Process.Signal(os.Interrupt))
	}
	all := map[string]Stats{}
	for _, a := range f.attackers {
		s, ok := <-a.stats
		if !ok {
			errs = append(errs, fmt.Errorf("the flood of %s ended without a word", a.kind))
		}
		errs = append(errs, a.cmd.Wait())
		all[a.kind] = s
	}
	f.attackers = nil
	return all, errors.Join(errs...)
}

// Kill ends what still runs.
func (f *Flood) Kill() {
	for _, a := range f.attackers {
		_ = a.cmd.Process.Kill()
		_ = a.cmd.Wait()
	}
	f.attackers = nil
}
