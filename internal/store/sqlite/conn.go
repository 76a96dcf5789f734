package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/sqlstore"
)

func init() { lib.PatchIssue199() } // as the driver does before its first use

// conn is one connection with its prepared statements. It is for one goroutine at a time.
type conn struct {
	tls   *libc.TLS
	db    uintptr
	stmts map[string]*stmt
	// What the library writes through pointers goes here: a variable on a goroutine's stack may move during the call.
	handle uintptr
	counts [2]int32
}

type stmt struct {
	p    uintptr
	busy bool // its rows are being read
	kept bool // in conn.stmts
}

// keptStmts bounds the statements a connection keeps prepared; those with lists of changing length do not fit forever.
const keptStmts = 128

// Error is a result code of SQLite with its message.
type Error struct {
	Code    int32 // extended
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("sqlite: %s (%d)", e.Message, e.Code) }

// Is lets errors.Is find a full disk. A file that may not grow by quota or limit fails as a write error; the disk
// pinPages takes one block of every size class of the library's allocator, for good. A page that holds no block goes
// back to the kernel at once, so without them each statement maps pages for its records and unmaps them again: a tenth
// of what a commit of one submission costs.
var pinPages = sync.OnceFunc(func() {
	tls := libc.NewTLS()
	defer tls.Close()
	for size := libc.Tsize_t(16); size <= 16<<10; size *= 2 {
		libc.Xmalloc(tls, size)
	}
})

// that is full when the shared-memory file must grow as its size error.
func (e *Error) Is(target error) bool {
	if target != store.ErrFull {
		return false
	}
	switch e.Code {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR_WRITE, lib.SQLITE_IOERR_SHMSIZE, lib.SQLITE_IOERR_TRUNCATE:
		return true
	}
	return false
}

func open(path string) (*conn, error) {
	pinPages()
	c := &conn{tls: libc.NewTLS(), stmts: map[string]*stmt{}}
	name, err := libc.CString(path)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, name)
	flags := int32(lib.SQLITE_OPEN_READWRITE | lib.SQLITE_OPEN_CREATE | lib.SQLITE_OPEN_NOMUTEX |
		lib.SQLITE_OPEN_EXRESCODE)
	rc := lib.Xsqlite3_open_v2(c.tls, name, uintptr(unsafe.Pointer(&c.handle)), flags, 0)
	c.db = c.handle
	if rc != lib.SQLITE_OK {
		err := c.error(rc)
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), c.close())
	}
	return c, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		lib.Xsqlite3_finalize(c.tls, s.p)
	}
	c.stmts = nil
	var err error
	if c.db != 0 {
		if rc := lib.Xsqlite3_close_v2(c.tls, c.db); rc != lib.SQLITE_OK {
			err = c.error(rc)
		}
		c.db = 0
	}
	c.tls.Close()
	return err
}

func (c *conn) error(rc int32) error {
	msg := libc.GoString(lib.Xsqlite3_errstr(c.tls, rc))
	if c.db != 0 {
		msg = libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.db))
	}
	return &Error{Code: rc, Message: msg}
}

// prepare returns a statement ready to be bound. Every one must be handed back with release.
func (c *conn) prepare(text string) (*stmt, error) {
	if s := c.stmts[text]; s != nil && !s.busy {
		s.busy = true
		return s, nil
	}
	z, err := libc.CString(numberParameters(text))
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, z)
	rc := lib.Xsqlite3_prepare_v2(c.tls, c.db, z, int32(len(text)+1), uintptr(unsafe.Pointer(&c.handle)), 0)
	if rc != lib.SQLITE_OK {
		return nil, fmt.Errorf("%w in %.200q", c.error(rc), text)
	}
	s := &stmt{p: c.handle, busy: true}
	if _, there := c.stmts[text]; !there && len(c.stmts) < keptStmts {
		s.kept = true
		c.stmts[text] = s
	}
	return s, nil
}

// numberParameters writes parameters as SQLite's numbers, ?1 for $1. To SQLite $1 is a name, which it looks up in a
// list of all names so far: the time to parse a list of thousands would grow with its square.
func numberParameters(text string) string {
	out := []byte(text)
	for i := range len(out) - 1 {
		if out[i] == '$' && '0' <= out[i+1] && out[i+1] <= '9' {
			out[i] = '?'
		}
	}
	return string(out)
}

func (c *conn) release(s *stmt) {
	s.busy = false
	if s.kept {
		lib.Xsqlite3_reset(c.tls, s.p)
		return
	}
	lib.Xsqlite3_finalize(c.tls, s.p)
}

// empty is what zero-length values point to: a null pointer would be NULL.
var empty = make([]byte, 1)

// The bind functions hand SQLite pointers into Go's heap and tell it that they stay (SQLITE_STATIC). That holds: Go's
// heap does not move, and the callers keep the values alive until the statement was stepped and rebound or reset.

func (c *conn) bindBytes(s *stmt, i int, b []byte) int32 {
	p := unsafe.SliceData(b)
	if len(b) == 0 {
		p = &empty[0]
	}
	return lib.Xsqlite3_bind_blob(c.tls, s.p, int32(i), uintptr(unsafe.Pointer(p)), int32(len(b)), 0)
}

func (c *conn) bindText(s *stmt, i int, b []byte) int32 {
	p := unsafe.SliceData(b)
	if len(b) == 0 {
		p = &empty[0]
	}
	return lib.Xsqlite3_bind_text(c.tls, s.p, int32(i), uintptr(unsafe.Pointer(p)), int32(len(b)), 0)
}

func (c *conn) bindValue(s *stmt, i int, v *sqlstore.Value) int32 {
	switch v.Kind {
	case sqlstore.Int, sqlstore.Bool:
		return lib.Xsqlite3_bind_int64(c.tls, s.p, int32(i), v.Int)
	case sqlstore.Text:
		return c.bindText(s, i, v.Bytes)
	case sqlstore.Bytes:
		return c.bindBytes(s, i, v.Bytes)
	default:
		return lib.Xsqlite3_bind_null(c.tls, s.p, int32(i))
	}
}

func (c *conn) bindArgs(s *stmt, args []any) error {
	for i, a := range args {
		var rc int32
		switch a := a.(type) {
		case int64:
			rc = lib.Xsqlite3_bind_int64(c.tls, s.p, int32(i+1), a)
		case string:
			rc = c.bindText(s, i+1, unsafe.Slice(unsafe.StringData(a), len(a)))
		case []byte:
			rc = c.bindBytes(s, i+1, a)
		case bool:
			n := int64(0)
			if a {
				n = 1
			}
			rc = lib.Xsqlite3_bind_int64(c.tls, s.p, int32(i+1), n)
		default:
			return fmt.Errorf("sqlite: cannot bind a %T", a)
		}
		if rc != lib.SQLITE_OK {
			return c.error(rc)
		}
	}
	return nil
}

// run executes a statement that gives no rows.
func (c *conn) run(text string, args ...any) (rows int64, err error) {
	s, err := c.prepare(text)
	if err != nil {
		return 0, err
	}
	defer c.release(s)
	if err := c.bindArgs(s, args); err != nil {
		return 0, err
	}
	for {
		switch rc := lib.Xsqlite3_step(c.tls, s.p); rc {
		case lib.SQLITE_ROW: // a pragma's answer
		case lib.SQLITE_DONE:
			runtime.KeepAlive(args)
			return int64(lib.Xsqlite3_changes(c.tls, c.db)), nil
		default:
			return 0, c.error(rc)
		}
	}
}

// query reads rows into dest; see sqlstore.Tx.
func (c *conn) query(ctx context.Context, text string, args, dest []any, each func() error) error {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	defer c.release(s)
	if err := c.bindArgs(s, args); err != nil {
		return err
	}
	for n := 0; ; n++ {
		if n&255 == 255 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch rc := lib.Xsqlite3_step(c.tls, s.p); rc {
		case lib.SQLITE_ROW:
			if err := c.scan(s, dest); err != nil {
				return err
			}
			if err := each(); err != nil {
				return err
			}
		case lib.SQLITE_DONE:
			runtime.KeepAlive(args)
			return nil
		default:
			return c.error(rc)
		}
	}
}

func (c *conn) scan(s *stmt, dest []any) error {
	for i, d := range dest {
		switch d := d.(type) {
		case *int64:
			*d = lib.Xsqlite3_column_int64(c.tls, s.p, int32(i))
		case *[]byte:
			*d = c.column(s, int32(i))
		case *string:
			*d = string(c.column(s, int32(i)))
		case *bool:
			*d = lib.Xsqlite3_column_int64(c.tls, s.p, int32(i)) != 0
		default:
			return fmt.Errorf("sqlite: cannot read into a %T", d)
		}
	}
	return nil
}

// column returns the bytes of a text or blob where SQLite keeps them; they are valid until the next step.
func (c *conn) column(s *stmt, i int32) []byte {
	p := lib.Xsqlite3_column_blob(c.tls, s.p, i)
	n := lib.Xsqlite3_column_bytes(c.tls, s.p, i)
	if p == 0 || n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}
