package sbcast

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
)

// fromEnvironment are the options that a variable SBCAST_NAME stands for.
var fromEnvironment = []string{"compress", "exclude", "fanout", "force", "preserve", "send-libs", "size", "timeout"}

// addEnvironment adds options that variables stand for and that the command line does not give.
func addEnvironment(w *cmd.World, f *cmd.Flags) {
	for _, option := range fromEnvironment {
		value, ok := w.Lookup("SBCAST_" + strings.ReplaceAll(strings.ToUpper(option), "-", "_"))
		if ok && !f.Has(option) {
			f.Values = append(f.Values, getopt.Value{Key: option, Value: value, Set: true, Option: "--" + option})
		}
	}
}

const (
	packed  = 2 // how -v tells of compression: as lz4; what is used between two ends of this command is its own matter
	defSize = 8 << 20
)

// wish is what the options say, as -v shows it.
type wish struct {
	compress, size, fanout, timeout int64
	exclude                         string
	force, preserve                 bool
}

// usualExclude are the folders whose libraries Slurm does not send.
const usualExclude = "/lib,/usr/lib,/lib64,/usr/lib64"

// readWish reads the options. Values that are not understood are told of and passed over, as Slurm does.
func readWish(w *cmd.World, f cmd.Flags) (*wish, error) {
	o := &wish{size: defSize, exclude: usualExclude, force: f.Has("force"), preserve: f.Has("preserve")}
	number := func(option string) int64 {
		n, _ := strconv.ParseInt(f.Get(option), 10, 64)
		return max(0, n)
	}
	o.fanout, o.timeout = number("fanout"), number("timeout")
	if f.Has("exclude") {
		o.exclude = f.Get("exclude")
	}
	if f.Has("compress") {
		value := f.Get("compress")
		bare := !slices.ContainsFunc(f.Values, func(v getopt.Value) bool { return v.Key == "compress" && v.Set })
		switch word := strings.ToLower(value); {
		case bare || word == "lz4":
			o.compress = packed
		case word != "none":
			w.Errorf("Compression type '%s' unknown, disabling compression support.", value)
		}
	}
	if f.Has("size") {
		n, ok := blockSize(f.Get("size"))
		if !ok {
			fmt.Fprintln(w.Err, "size specification is invalid, ignored")
		}
		o.size = n
	}
	switch v := f.Get("send-libs"); {
	case !f.Has("send-libs"), strings.EqualFold(v, "no"):
	case v == "", strings.EqualFold(v, "yes"):
		return nil, fmt.Errorf("--send-libs is not supported: copy the libraries one by one, and name their folder " +
			"in LD_LIBRARY_PATH")
	default:
		w.Errorf("Ignoring unrecognized --send-libs value '%s'", v)
	}
	return o, nil
}

// blockSize reads bytes, or with k and m as many times as many.
func blockSize(text string) (int64, bool) {
	digits, unit := text, int64(1)
	if text != "" {
		switch text[len(text)-1] {
		case 'k', 'K':
			digits, unit = text[:len(text)-1], 1<<10
		case 'm', 'M':
			digits, unit = text[:len(text)-1], 1<<20
		}
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 {
		return 0, false
	}
	return n * unit, true
}

// show prints what -v shows of the options.
func (o *wish) show(w *cmd.World, f cmd.Flags, level string) {
	const rule = "-----------------------------"
	w.Infof("%s", rule)
	w.Infof("block_size = %d", o.size)
	w.Infof("compress   = %d", o.compress)
	w.Infof("exclude    = %s", o.exclude)
	w.Infof("force      = %t", o.force)
	w.Infof("fanout     = %d", o.fanout)
	w.Infof("preserve   = %t", o.preserve)
	w.Infof("send_libs  = false")
	w.Infof("timeout    = %d", o.timeout*1000)
	w.Infof("verbose    = %s", level)
	w.Infof("source     = %s", f.Operands[0])
	w.Infof("dest       = %s", f.Operands[1])
	w.Infof("%s", rule)
}

// tellFile prints what -v shows of the file.
func tellFile(w *cmd.World, info os.FileInfo) {
	var uid, gid uint32
	accessed, changed := info.ModTime(), info.ModTime()
	kind := uint32(0)
	if st, ok := statOf(info); ok {
		uid, gid, kind, accessed, changed = st.uid, st.gid, st.mode, st.accessed, st.changed
	}
	w.Infof("modes    = %o", kind)
	w.Infof("uid      = %d", uid)
	w.Infof("gid      = %d", gid)
	w.Infof("atime    = %s", accessed.Format(time.ANSIC))
	w.Infof("mtime    = %s", info.ModTime().Format(time.ANSIC))
	w.Infof("ctime    = %s", changed.Format(time.ANSIC))
	w.Infof("size     = %d", info.Size())
}

// quiet leaves out what srun says of the ends of the receiving ends: they have told why themselves.
type quiet struct{ to io.Writer }

func (q *quiet) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		if text := string(line); strings.Contains(text, ": task") && strings.Contains(text, "Exited with exit code") {
			continue
		}
		if _, err := q.to.Write(line); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}
