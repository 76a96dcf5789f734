// Package samples keeps what jobs used, moment by moment: one file a job's attempt, one line of JSON a sample, below a
// directory like that of the log store. The first hour of a job is kept as it comes, what follows once a minute; of all
// samples the sums are kept in memory while the job runs.
package samples

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/logstore"
)

// Key names a job's attempt.
type Key = logstore.Key

const (
	fineFor = time.Hour   // samples are kept as they come for so long
	coarse  = time.Minute // and then once in so long
)

// maxFile bounds the samples of a job's attempt: a year of one that runs on a few nodes. What is over is dropped.
const maxFile = 64 << 20

// Store keeps samples. It is safe for all goroutines. No lock that the end of a job waits for is held across I/O.
type Store struct {
	files *logstore.Store

	mu   sync.Mutex
	live map[Key]*sum
}

// sum is what is known of a job that runs.
type sum struct {
	write  sync.Mutex // held by who reads or writes the file
	loaded bool       // what an earlier server kept has been added

	mu               sync.Mutex // guards what follows; never held across I/O
	first, kept      core.Time  // kept: of the last sample that was
	n                int64      // samples with GPUs
	util, utilMost   float64
	mem, memMost     float64
	lastUtil, lastMB map[core.NodeName]float64 // of each node: a job's GPUs may be on several
}

// New uses dir, which need not exist yet.
func New(dir string) *Store {
	s := &Store{files: logstore.New(dir), live: map[Key]*sum{}}
	s.SetMinFree(0)
	return s
}

// SetMinFree has samples dropped while fewer bytes of the disk are free.
func (s *Store) SetMinFree(n int64) { s.files.SetBounds(logstore.Bounds{PerJob: maxFile, MinFree: n}) }

// sum finds or makes the sums of a job that runs.
func (s *Store) sum(k Key, at core.Time) *sum {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.live[k]
	if t == nil {
		t = &sum{first: at, lastUtil: map[core.NodeName]float64{}, lastMB: map[core.NodeName]float64{}}
		s.live[k] = t
	}
	return t
}

// Add keeps a sample of a job.
func (s *Store) Add(k Key, x *core.Sample) error {
	t := s.sum(k, x.At)
	t.write.Lock()
	defer t.write.Unlock()
	if !t.loaded {
		old, err := s.Read(k)
		if err != nil {
			return err
		}
		t.mu.Lock()
		for i := range old { // the server was started again
			t.add(&old[i])
			t.first = min(t.first, old[i].At)
		}
		t.mu.Unlock()
		t.loaded = true
	}
	if !t.keep(x) {
		return nil
	}
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	end, err := s.files.Have(k)
	if err != nil {
		return err
	}
	_, err = s.files.Append(k, "", end, append(line, '\n'), false)
	return err
}

// keep adds a sample to the sums and reports whether it is one to be kept.
func (t *sum) keep(x *core.Sample) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(x)
	if x.At.Sub(t.first) > fineFor && x.At.Sub(t.kept) < coarse && x.At != t.kept {
		return false
	}
	t.kept = x.At
	return true
}

func (t *sum) add(x *core.Sample) {
	if len(x.GPUs) == 0 {
		return
	}
	var util, mem float64
	for _, g := range x.GPUs {
		util += g.Util
		mem += float64(g.Mem)
	}
	t.lastUtil[x.Node], t.lastMB[x.Node] = util, mem
	util, mem = 0, 0
	for n := range t.lastUtil {
		util += t.lastUtil[n]
		mem += t.lastMB[n]
	}
	t.n++
	t.util, t.mem = t.util+util, t.mem+mem
	t.utilMost, t.memMost = max(t.utilMost, util), max(t.memMost, mem)
}

// Use puts what was sampled of a job's GPUs into its usage.
func (s *Store) Use(k Key, u *core.Usage) {
	s.mu.Lock()
	t := s.live[k]
	s.mu.Unlock()
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n > 0 {
		u.GPUUtil, u.GPUUtilAve = int32(math.Round(t.utilMost)), int32(math.Round(t.util/float64(t.n)))
		u.GPUMem, u.GPUMemAve = core.Bytes(t.memMost), core.Bytes(t.mem/float64(t.n))
	}
}

// End tells that a job's attempt is over. It waits for no disk.
func (s *Store) End(k Key) {
	s.mu.Lock()
	t := s.live[k]
	delete(s.live, k)
	s.mu.Unlock()
	if t != nil {
		s.files.End(k)
	}
}

// Read returns a job's samples, oldest first; none if there are none.
func (s *Store) Read(k Key) ([]core.Sample, error) {
	base, end, err := s.files.Range(k)
	if err != nil || end == base {
		return nil, err
	}
	var b bytes.Buffer
	if err := s.files.Copy(context.Background(), &b, k, base, nil, nil); err != nil {
		return nil, err
	}
	var list []core.Sample
	for line := range bytes.Lines(b.Bytes()) {
		var x core.Sample
		if json.Unmarshal(line, &x) == nil { // a line cut short by a crash is nobody's loss
			list = append(list, x)
		}
	}
	return list, nil
}

// Purge removes samples of jobs last written before the moment, at most limit of them.
func (s *Store) Purge(before time.Time, limit int) (int, error) { return s.files.Purge(before, limit) }

// Close closes the files.
func (s *Store) Close() error { return s.files.Close() }
