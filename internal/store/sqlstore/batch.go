package sqlstore

import (
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"
)

// Batch is everything one commit writes, in order. It exists so that an engine sees all rows of a table at once and can
// send them in few statements.
type Batch struct {
	Fence Fence
	Ops   []Op

	vals   []Value
	buf    []byte    // documents
	packed []byte    // blobs
	sealed []byte    // packed, as it is stored
	put    []blobKey // what packed holds
}

// Fence is the statement every write starts with.
type Fence struct {
	Epoch    int64
	Before   int64 // the sequence number the leader row must have; < 0: any
	Events   int64 // how many follow it
	NextJob  int64
	NextNode int64
	Now      int64
}

// fenceText moves the sequence and the counters if the epoch still leads and nobody else wrote since. Counters never go
// back, whatever the caller says.
const fenceText = `UPDATE leader SET seq = seq + $1,
 next_job = CASE WHEN $2 > next_job THEN $2 ELSE next_job END,
 next_node = CASE WHEN $3 > next_node THEN $3 ELSE next_node END,
 now = CASE WHEN $4 > now THEN $4 ELSE now END
 WHERE epoch = $5 AND (seq = $6 OR CAST($6 AS BIGINT) < 0)`

// Text is the fence's statement; it must change one row.
func (Fence) Text() string { return fenceText }

// Args are the arguments of Text.
func (f Fence) Args() [6]int64 {
	return [6]int64{f.Events, f.NextJob, f.NextNode, f.Now, f.Epoch, f.Before}
}

// Op is one or more rows for one Insert.
type Op struct {
	Insert *Insert
	Rows   int
	vals   []Value // Rows × len(Insert.Cols)
	from   int     // while building: index into Batch.vals
}

// Values returns the values of rows [from, to).
func (o *Op) Values(from, to int) []Value {
	n := len(o.Insert.Cols)
	return o.vals[from*n : to*n]
}

// Kind says what a Value is.
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	Int
	Bool
	Text
	Bytes
)

// Value is one argument without an allocation. Bytes holds text and bytes; it must stay as it is until the batch is
// done.
type Value struct {
	Kind  Kind
	Int   int64
	Bytes []byte
}

// Insert is a statement that writes rows: INSERT INTO table (cols) VALUES … tail. Cols is never empty. With One set it
// is that statement instead, for one row of arguments at a time.
type Insert struct {
	Table string
	Cols  []string
	Tail  string
	One   string

	texts sync.Map // by number of rows
}

// newInsert makes an Insert that replaces the row with the same key.
func newInsert(table, key string, cols ...string) *Insert {
	isKey := map[string]bool{}
	for _, k := range strings.Split(key, ", ") {
		isKey[k] = true
	}
	var set []string
	for _, c := range cols {
		if !isKey[c] {
			set = append(set, c+" = excluded."+c)
		}
	}
	return &Insert{Table: table, Cols: cols, Tail: " ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(set, ", ")}
}

// keepFirst makes an Insert that leaves a row with the same key alone.
func keepFirst(table, key string, cols ...string) *Insert {
	return &Insert{Table: table, Cols: cols, Tail: " ON CONFLICT (" + key + ") DO NOTHING"}
}

// SQL is the statement for a number of rows, of which there should be few.
func (in *Insert) SQL(rows int) string {
	if in.One != "" {
		return in.One
	}
	if text, ok := in.texts.Load(rows); ok {
		return text.(string)
	}
	text := in.build(rows)
	in.texts.Store(rows, text)
	return text
}

func (in *Insert) build(rows int) string {
	b := append([]byte(nil), "INSERT INTO "+in.Table+" ("+strings.Join(in.Cols, ", ")+") VALUES "...)
	for r := range rows {
		if r > 0 {
			b = append(b, ", "...)
		}
		for c := range in.Cols {
			if c == 0 {
				b = append(b, "($"...)
			} else {
				b = append(b, ", $"...)
			}
			b = strconv.AppendInt(b, int64(r*len(in.Cols)+c+1), 10)
		}
		b = append(b, ')')
	}
	return string(append(b, in.Tail...))
}

// row begins a row of in; its values follow in the order of its columns.
func (b *Batch) row(in *Insert) {
	if n := len(b.Ops); n > 0 && b.Ops[n-1].Insert == in {
		b.Ops[n-1].Rows++
		return
	}
	b.Ops = append(b.Ops, Op{Insert: in, Rows: 1, from: len(b.vals)})
}

// done closes the batch: vals does not move any more.
func (b *Batch) done() {
	for i := range b.Ops {
		o := &b.Ops[i]
		o.vals = b.vals[o.from : o.from+o.Rows*len(o.Insert.Cols)]
	}
}

func (b *Batch) null()           { b.vals = append(b.vals, Value{}) }
func (b *Batch) int(n int64)     { b.vals = append(b.vals, Value{Kind: Int, Int: n}) }
func (b *Batch) bytes(p []byte)  { b.vals = append(b.vals, Value{Kind: Bytes, Bytes: p}) }
func (b *Batch) bool(v bool)     { b.vals = append(b.vals, Value{Kind: Bool, Int: int64(b2i(v))}) }
func (b *Batch) textOf(p []byte) { b.vals = append(b.vals, Value{Kind: Text, Bytes: p}) }

func (b *Batch) text(s string) {
	s = clean(s)
	b.textOf(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// clean makes s fit to be a TEXT: PostgreSQL takes neither NUL nor what is not UTF-8. Documents do the same.
func clean(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] == 0 || s[i] >= utf8.RuneSelf {
			return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\ufffd")
		}
	}
	return s
}

func b2i(v bool) int {
	if v {
		return 1
	}
	return 0
}
