package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// followed is how much a run writes while its log is followed; each of its lines is logLine bytes with its end.
const (
	followed = 1 << 30
	logLine  = 100
	// firstLines is how often the first line is timed.
	firstLines = 20
)

// dstackLogs measures logs of runs. They are processes: what a container engine adds is its own.
func (s *suite) dstackLogs(ctx context.Context) error {
	cl, err := s.up(ctx, nil, "--cpus", "4", "--memory", "4G")
	if err != nil {
		return err
	}
	defer cl.down()
	if err := s.firstLine(ctx, cl); err != nil {
		return err
	}
	const live = "log followed while it is written"
	if err := s.follow(ctx, cl, live, followed, "100 MB/s"); err != nil {
		return err
	}
	if s.logGB == 0 {
		return nil
	}
	return s.follow(ctx, cl, fmt.Sprintf("a log of %d GB, followed", s.logGB), int64(s.logGB)*1e9, "no line lost")
}

// firstLine times what somebody sees of a run that writes one line and waits.
func (s *suite) firstLine(ctx context.Context, cl *cluster) error {
	pipe := filepath.Join(cl.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		return err
	}
	file, err := cl.file("echo.yml", "type: task\nname: echo\nruntime: process\nresources: {cpu: 1, memory: 16MB..}\n"+
		"commands:\n  - exec 3<>"+pipe+"\n  - echo first\n  - while read -r line <&3; do echo $line; done\n")
	if err != nil {
		return err
	}
	if _, err := cl.bireme("apply", "-y", "-d", "-f", file); err != nil {
		return err
	}
	in, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	for range 1000 { // until it runs
		if out, err := cl.bireme("logs", "echo"); err == nil && strings.Contains(out, "first") {
			break
		}
	}
	var first, next []time.Duration
	for i := range firstLines {
		cmd := cl.command("bireme", "logs", "-f", "echo")
		cmd.Path = filepath.Join(cl.bin, "bireme")
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		began := time.Now()
		if err := cmd.Start(); err != nil {
			return err
		}
		r := bufio.NewReader(out)
		for n := range i + 1 { // all that was written before
			if _, err := r.ReadString('\n'); err != nil {
				return err
			}
			if n == 0 {
				first = append(first, time.Since(began))
			}
		}
		began = time.Now()
		fmt.Fprintln(in, i)
		if _, err := r.ReadString('\n'); err != nil {
			return err
		}
		next = append(next, time.Since(began))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	s.add(row{
		what:  "`bireme logs -f`: start of the command → first line, p50 / max",
		value: ms(pct(first, 50)) + " / " + ms(pct(first, 100)), budget: "50 ms",
	})
	s.add(row{
		what:  "  a line is written → it is seen, p50 / max",
		value: ms(pct(next, 50)) + " / " + ms(pct(next, 100)), budget: "50 ms",
	})
	_, err = cl.bireme("stop", "-y", "-x", "echo")
	return err
}

// follow has a run write numbered lines, follows them from the first to the last, and checks each. Meanwhile it asks
// the server for its nodes.
func (s *suite) follow(ctx context.Context, cl *cluster, what string, size int64, floor string) error {
	lines := size / logLine
	gen, err := os.Executable()
	if err != nil {
		return err
	}
	name := "log" + strconv.FormatInt(lines, 10)
	file, err := cl.file(name+".yml", fmt.Sprintf("type: task\nname: %s\nruntime: process\n"+
		"resources: {cpu: 1, memory: 64MB..}\ncommands:\n  - %s=%d exec %s\n", name, envLines, lines, gen))
	if err != nil {
		return err
	}
	asked, quit := make(chan []time.Duration), make(chan struct{})
	go func() {
		var times []time.Duration
		for {
			select {
			case <-quit:
				asked <- times
				return
			case <-time.After(20 * time.Millisecond):
			}
			began := time.Now()
			if _, err := cl.c.Nodes(ctx); err == nil {
				times = append(times, time.Since(began))
			}
		}
	}()
	before := cl.cpu()
	if _, err := cl.bireme("apply", "-y", "-d", "-f", file); err != nil {
		return err
	}
	wait := s.profile(cl, name, 5*time.Second)
	cmd := cl.command("bireme", "logs", "-f", name)
	cmd.Path = filepath.Join(cl.bin, "bireme")
	began := time.Now()
	got, err := checkLines(cmd, lines)
	took := time.Since(began)
	wait()
	close(quit)
	times := <-asked
	if err != nil {
		return fmt.Errorf("%s: after %d lines of %d: %w", what, got, lines, err)
	}
	sp := cl.cpu().sub(before)
	again := cl.command("bireme", "logs", name)
	again.Path = filepath.Join(cl.bin, "bireme")
	began = time.Now()
	if got, err := checkLines(again, lines); err != nil {
		return fmt.Errorf("%s: read again: after %d lines of %d: %w", what, got, lines, err)
	}
	stored := time.Since(began)
	own := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	gb := float64(size) / 1e9
	s.add(row{
		what: what, value: fmt.Sprintf("%.0f MB/s, all %d lines", float64(size)/1e6/took.Seconds(), lines), budget: floor,
	})
	s.add(row{
		what:  "  read again after its end",
		value: fmt.Sprintf("%.0f MB/s, all lines", float64(size)/1e6/stored.Seconds()),
	})
	s.add(row{
		what: "  CPU s/GB",
		value: fmt.Sprintf("logs %.2f, server %.2f, agent %.2f, keeper %.2f", own.Seconds()/gb, sp.server.Seconds()/gb,
			sp.agents.Seconds()/gb, sp.keepers.Seconds()/gb),
	})
	s.add(row{
		what:  fmt.Sprintf("  another's request meanwhile, p50 / p99 / max of %d", len(times)),
		value: fmt.Sprintf("%s / %s / %s", ms(pct(times, 50)), ms(pct(times, 99)), ms(pct(times, 100))),
	})
	return nil
}

// envLines makes a process of this program one that prints so many numbered lines.
const envLines = "BIREME_BENCH_LINES"

// printLines prints numbered lines and exits, where the environment asks for it.
func printLines() {
	n, err := strconv.ParseInt(os.Getenv(envLines), 10, 64)
	if err != nil {
		return
	}
	w := bufio.NewWriterSize(os.Stdout, 1<<20)
	line := bytes.Repeat([]byte("."), logLine)
	line[logLine-1] = '\n'
	for i := range n {
		number(line, i)
		if _, err := w.Write(line); err != nil {
			os.Exit(1)
		}
	}
	if w.Flush() != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// number writes a line's number into its first 12 bytes.
func number(line []byte, i int64) {
	for at := 11; at >= 0; at-- {
		line[at] = byte('0' + i%10)
		i /= 10
	}
}

// checkLines runs a command that prints the lines of printLines, to its end.
func checkLines(cmd *exec.Cmd, lines int64) (got int64, err error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	r := bufio.NewReaderSize(out, 1<<20)
	line, want := make([]byte, logLine), bytes.Repeat([]byte("."), logLine)
	want[logLine-1] = '\n'
	for {
		if _, err = io.ReadFull(r, line); err != nil {
			break
		}
		if number(want, got); !bytes.Equal(line, want) {
			err = fmt.Errorf("line %q for %q", line, want)
			break
		}
		got++
	}
	if errors.Is(err, io.EOF) {
		err = nil
	} else {
		_ = cmd.Process.Kill()
	}
	if end := cmd.Wait(); err == nil {
		err = end
	}
	if err == nil && got != lines {
		err = errors.New("the log ends early")
	}
	if err != nil {
		err = fmt.Errorf("%w %s", err, stderr.String())
	}
	return got, err
}
