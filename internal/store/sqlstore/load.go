package sqlstore

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/doc"
)

// Load reads the live part. One goroutine reads rows, as many as there are processors decode them.
func (db *DB) Load(ctx context.Context) (*store.Image, error) {
	img := &store.Image{}
	err := db.engine.Read(ctx, func(tx Tx) (err error) {
		var next, now int64
		if err = queryRow(tx, `SELECT seq, next_job, next_node, now FROM leader`, nil, &img.Seq, &next, &img.NextNode,
			&now); err != nil {
			return err
		}
		img.NextJob, img.Now = core.JobID(next), core.Time(now)
		last := &img.LastIDs
		if err = queryRow(tx, `SELECT reservation, qos, project FROM last_ids`, nil, &last.Reservation, &last.QOS,
			&last.Project); err != nil {
			return err
		}
		if img.Jobs, err = loadJobs(ctx, tx); err != nil {
			return err
		}
		if img.Steps, err = readSteps(tx, liveSteps, nil); err != nil {
			return err
		}
		if img.Nodes, err = readNodes(tx); err != nil {
			return err
		}
		if img.Users, err = readUsers(tx); err != nil {
			return err
		}
		if img.Projects, err = readProjects(tx); err != nil {
			return err
		}
		if img.QOS, err = readQOS(tx); err != nil {
			return err
		}
		if img.Reservations, err = readReservations(tx); err != nil {
			return err
		}
		if img.Fleets, err = readFleets(tx); err != nil {
			return err
		}
		if img.Credentials, err = readCredentials(tx); err != nil {
			return err
		}
		if img.Volumes, err = readVolumes(tx); err != nil {
			return err
		}
		if img.Spent, err = readSpent(tx); err != nil {
			return err
		}
		if img.Tokens, err = readTokens(tx); err != nil {
			return err
		}
		if img.Runs, err = readRuns(tx, `end_at = 0 ORDER BY created_at, id`, nil); err != nil {
			return err
		}
		img.Keys, err = readKeys(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return img, nil
}

// liveSteps goes from jobs to steps: SQLite keeps to that order for the word CROSS, and would read all of history else.
const liveSteps = `SELECT ` + stepColumns +
	` FROM jobs j CROSS JOIN steps t WHERE j.live AND t.job = j.id ORDER BY j.id, t.attempt, t.id`

// loadChunk is how many rows travel to a decoder at once.
const loadChunk = 256

// rawJob is a row as it came. spec is nil for a task of an array, which shares its array's.
type rawJob struct {
	row  jobRow
	spec *specRow
}

type rawChunk struct {
	rows []rawJob
	buf  []byte // holds the bytes of rows
	out  []*core.Job
}

// own copies p into the chunk.
func (c *rawChunk) own(p []byte) []byte {
	from := len(c.buf)
	c.buf = append(c.buf, p...)
	return c.buf[from:len(c.buf):len(c.buf)]
}

func loadJobs(ctx context.Context, tx Tx) ([]*core.Job, error) {
	work := make(chan *rawChunk, 16)
	g, ctx := errgroup.WithContext(ctx)
	for range max(1, runtime.GOMAXPROCS(0)) {
		g.Go(func() error {
			var dec doc.Decoder
			for c := range work {
				c.decode(&dec)
			}
			return nil
		})
	}
	var chunks []*rawChunk
	g.Go(func() (err error) {
		defer close(work)
		chunks, err = readLive(ctx, tx, work)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	n := 0
	for _, c := range chunks {
		n += len(c.out)
	}
	jobs := make([]*core.Job, 0, n)
	for _, c := range chunks {
		jobs = append(jobs, c.out...)
	}
	return jobs, shareSpecs(tx, jobs)
}

// readLive sends chunks of rows to work, and returns them all in order of id.
func readLive(ctx context.Context, tx Tx, work chan<- *rawChunk) ([]*rawChunk, error) {
	var r jobRow
	var s specRow
	cur := &rawChunk{}
	chunks := []*rawChunk{cur}
	send := func() error {
		select {
		case work <- cur:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	text := `SELECT ` + jobColumns + `, ` + specColumns +
		` FROM jobs j LEFT JOIN specs s ON s.id = j.id AND j.spec_id = j.id WHERE j.live ORDER BY j.id`
	err := tx.Query(text, nil, append(r.dest(), s.dest()...), func() error {
		raw := rawJob{row: r}
		raw.row.doc = cur.own(r.doc)
		if r.spec == r.id {
			raw.spec = &specRow{cur.own(s.script), cur.own(s.env), cur.own(s.doc)}
		}
		cur.rows = append(cur.rows, raw)
		if len(cur.rows) < loadChunk {
			return nil
		}
		size := len(cur.buf) + len(cur.buf)/8
		err := send() // it is the decoder's from here on
		cur = &rawChunk{rows: make([]rawJob, 0, loadChunk), buf: make([]byte, 0, size)}
		chunks = append(chunks, cur)
		return err
	})
	if err != nil {
		return nil, err
	}
	return chunks, send()
}

func (c *rawChunk) decode(dec *doc.Decoder) {
	c.out = make([]*core.Job, len(c.rows))
	for i := range c.rows {
		raw := &c.rows[i]
		c.out[i] = raw.decode(dec)
	}
	c.rows, c.buf = nil, nil
}

// decode reads one record. One that cannot be read is there all the same, without a spec, for the engine to hold: a
// server that did not start because of it would serve nobody.
func (r *rawJob) decode(dec *doc.Decoder) (j *core.Job) {
	defer func() {
		if p := recover(); p != nil {
			*dec = doc.Decoder{}
			j = r.unreadable(fmt.Errorf("decoding it failed: %v", p))
		}
	}()
	j, err := r.row.job(dec)
	if err != nil {
		return r.unreadable(err)
	}
	if r.spec == nil {
		return j
	}
	if j.Spec, err = r.spec.spec(dec); err != nil {
		return r.unreadable(err)
	}
	return j
}

func (r *rawJob) unreadable(err error) *core.Job {
	return r.row.unreadable(err)
}

// shareSpecs gives jobs without a spec that of their array: from the array's own record, or from the table.
func shareSpecs(tx Tx, jobs []*core.Job) error {
	known := map[core.JobID]*core.Spec{}
	var without []*core.Job
	for _, j := range jobs {
		if j.Spec == nil {
			without = append(without, j)
		} else if j.Array != nil && j.Spec != nil {
			known[j.ID] = j.Spec
		}
	}
	return attachSpecs(tx, &doc.Decoder{}, without, known)
}
