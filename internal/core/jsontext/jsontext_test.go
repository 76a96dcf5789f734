package jsontext

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// texts are inputs that parsers get wrong, valid and invalid ones.
var texts = []string{
	``, ` `, `null`, `nul`, `nulls`, `true`, `tru`, `truex`, `false`, `fals`, `"`, `""`, `"a`, `"\`, `"\"`, `"\q"`,
	`"\u12"`, `"\u12g4"`, `"\U0041"`,
	`"\u0041\/\b\f\n\r\t\"\\"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\n"`, `"\ud83d\u0041"`,
	`"\ud83dx"`, `"\ud83d\u"`, `"\uDBFF\uDFFF"`, `"\u0000"`,
	`"\\u0000"`, `"\\\u0000"`, "\"\x00\"", "\"a\nb\"", "\"\x1f\"", "\"\x7f\"", "\"\xff\"", "\"a\xc3\"",
	"\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x80\xa8\"", "\"ä€😀\"", "\xef\xbb\xbf{}",
	"\"12345678\xff12345678\"", "\"1234567\\n12345678\"", `"1234567"`, `"12345678"`, "\"1234567\x01\"",
	`0`, `-0`, `-`, `+1`, `01`, `-01`, `00`, `1.`, `.5`, `1.5`, `1.5e`, `1e+`, `1e5`, `1E-5`, `-1.0e+10`, `1x`,
	`0x10`, `1_0`, `NaN`, `Infinity`, `1 2`, `--1`,
	`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`,
	`18446744073709551615`, `18446744073709551616`,
	`2147483647`, `2147483648`, `-2147483649`, `4294967295`, `4294967296`, `65535`, `65536`,
	`99999999999999999999999999`, `1e400`,
	`{}`, `{`, `}`, `[]`, `[`, `]`, `[]]`, `{}{}`, `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`,
	`{"a" 1}`, `{a:1}`, `{1:1}`, `{"a":1,"a":2}`,
	`{"\u0061":1,"a":{"b":[]}}`, "{\"\xff\":1}", `[1,]`, `[,]`, `[1 2]`, `[1,2`, `[null,true,false,"x",{},[]]`,
	` { "a" : [ 1 , { "b" : null } ] } `, "[1,\v2]", "[1]\x00", `[1]//`,
	`{"a":{"b":{"c":[[[{"d":"e"}]]]}}}`, `["a",["b"],{"c":"d"}]`, `[tru]`, `[nul]`, `[-]`, `{"a":"b`, `[{"a":1},{"b":]`,
}

// value builds what encoding/json would put into an any.
func value(r *Reader) any {
	switch r.Peek() {
	case '{':
		m := map[string]any{}
		for key := range r.Members() {
			k := string(key)
			m[k] = value(r)
		}
		return m
	case '[':
		list := []any{}
		n, from := -1, r.Offset()
		if r.depth < 20 { // it reads the whole list
			n = r.CountElements()
		}
		if r.Err() == nil && r.Offset() != from {
			panic("CountElements moved")
		}
		for i := range r.Elements() {
			if i != len(list) {
				panic("a wrong index")
			}
			list = append(list, value(r))
		}
		if r.Err() == nil && n >= 0 && n != len(list) {
			panic("CountElements is wrong")
		}
		return list
	case '"':
		from := r.Offset()
		again := *r
		text := again.AppendText([]byte("x"))[1:]
		b := r.Text()
		if string(b) != string(text) || r.Offset() != again.Offset() || (r.Err() == nil) != (again.Err() == nil) {
			panic("Text and AppendText differ at " + strconv.Itoa(from))
		}
		return string(b)
	case 't', 'f':
		return r.Bool()
	case 'n':
		if !r.Null() {
			r.Fail("no null")
		}
		return nil
	}
	from := r.Offset()
	r.Skip()
	if r.Err() != nil {
		return nil
	}
	return json.Number(r.Raw(from))
}

// checkRead compares one text with encoding/json: accepted or not, and what it means.
func checkRead(t *testing.T, data []byte) {
	t.Helper()
	keep := bytes.Clone(data)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var want any
	wantErr := dec.Decode(&want)
	if wantErr == nil {
		if _, err := dec.Token(); err != io.EOF {
			wantErr = io.ErrNoProgress
		}
	}
	if json.Valid(data) != (wantErr == nil) {
		t.Fatalf("encoding/json disagrees with itself on %q: %v", data, wantErr)
	}
	skip := NewReader(data)
	skip.Skip()
	skip.End()
	read := NewReader(data)
	got := value(&read)
	read.End()
	if (skip.Err() == nil) != (wantErr == nil) || (read.Err() == nil) != (wantErr == nil) {
		t.Fatalf("%q: Skip says %v, reading says %v, encoding/json %v", data, skip.Err(), read.Err(), wantErr)
	}
	if !bytes.Equal(keep, data) {
		t.Fatalf("%q was changed to %q", keep, data)
	}
	if wantErr != nil {
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%q (-want +got):\n%s", data, d)
	}
	if has := HasNUL(data); has != nulIn(want) {
		t.Fatalf("%q: HasNUL is %v", data, has)
	}
	text, other := size(want)
	if strings, others := Count(data); strings < text || strings+others < text+other {
		t.Fatalf("%q: counted %d strings and %d others; there are at least %d and %d", data, strings, others, text, other)
	}
}

func nulIn(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.ContainsRune(v, 0)
	case []any:
		for _, e := range v {
			if nulIn(e) {
				return true
			}
		}
	case map[string]any:
		for k, e := range v {
			if nulIn(k) || nulIn(e) {
				return true
			}
		}
	}
	return false
}

// size counts the strings with keys, and the objects and lists. Equal keys were lost.
func size(v any) (text, other int) {
	switch v := v.(type) {
	case string:
		return 1, 0
	case []any:
		other = 1
		for _, e := range v {
			a, b := size(e)
			text, other = text+a, other+b
		}
	case map[string]any:
		other = 1
		for _, e := range v {
			a, b := size(e)
			text, other = text+a+1, other+b
		}
	}
	return text, other
}

// checkNumbers compares the integers with encoding/json.
func checkNumbers(t *testing.T, data []byte) {
	t.Helper()
	number[int64](t, data, (*Reader).Int)
	number[uint64](t, data, (*Reader).Uint)
	number[int32](t, data, (*Reader).Int32)
	number[uint32](t, data, (*Reader).Uint32)
	number[uint16](t, data, (*Reader).Uint16)
}

func number[T comparable](t *testing.T, data []byte, read func(*Reader) T) {
	t.Helper()
	var want T
	wantErr := json.Unmarshal(data, &want)
	r := NewReader(data)
	if r.Peek() == 'n' { // null leaves a number alone there, and is none here
		return
	}
	got := read(&r)
	r.End()
	if (r.Err() == nil) != (wantErr == nil) || wantErr == nil && got != want {
		t.Fatalf("%T of %q: %v, %v; encoding/json says %v, %v", want, data, got, r.Err(), want, wantErr)
	}
}

// checkWrite compares both forms of a string with encoding/json, and reads them back.
func checkWrite(t *testing.T, s string) {
	t.Helper()
	html, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	if got := AppendHTMLString([]byte("x"), s); string(got) != "x"+string(html) {
		t.Fatalf("AppendHTMLString: got %s, want %s", got, html)
	}
	got := AppendString(nil, s)
	if want := strings.TrimSuffix(plain.String(), "\n"); string(got) != want {
		t.Fatalf("AppendString: got %s, want %s", got, want)
	}
	r := NewReader(got)
	back := string(r.Text())
	r.End()
	var want string
	if err := json.Unmarshal(html, &want); err != nil || r.Err() != nil || back != want {
		t.Fatalf("%q read back is %q, want %q; %v, %v", s, back, want, r.Err(), err)
	}
}

func TestLikeEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, s := range texts {
		checkRead(t, []byte(s))
		checkNumbers(t, []byte(s))
		checkWrite(t, s)
		checkRead(t, []byte(` [ {"a":`+s+`} , `+s+`]`))
	}
	for c := range 256 { // every byte at every place of a word of eight
		for at := range 9 {
			b := []byte(`"123456789"`)
			b[1+at] = byte(c)
			checkRead(t, b)
			checkWrite(t, string(b))
		}
	}
}

// Nesting is bounded as in encoding/json, in every way to read it.
func TestDeepNesting(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 100, maxDepth - 1, maxDepth, maxDepth + 1, maxDepth + 2, 1 << 20} {
		for _, pair := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
			open := strings.Repeat(pair[0], n)
			for _, text := range []string{open + "1" + strings.Repeat(pair[1], n), open} {
				r := NewReader([]byte(text))
				r.Skip()
				r.End()
				if ok := json.Valid([]byte(text)); ok != (r.Err() == nil) {
					t.Errorf("%d times %s: %v, encoding/json says %v", n, pair[0], r.Err(), ok)
				}
			}
		}
	}
	r := NewReader([]byte(strings.Repeat("[],", 3*maxDepth))) // many, none in another
	for range 3 * maxDepth {
		r.Skip()
		if !r.take(',') {
			t.Fatal(r.Err())
		}
	}
}

// After an error nothing more is read, and the first error stays.
func TestErrorStays(t *testing.T) {
	t.Parallel()
	r := NewReader([]byte(`{"a":x,"b":1}`))
	n := 0
	for range r.Members() {
		r.Skip()
		n++
	}
	first := r.Err()
	if n != 1 || first == nil || !strings.Contains(first.Error(), "at byte 5") {
		t.Fatalf("%d members, %v", n, first)
	}
	if r.Int() != 0 || r.Uint() != 0 || r.Bool() || r.Null() || len(r.Text()) != 0 || len(r.AppendText(nil)) != 0 ||
		r.CountElements() != 0 {
		t.Error("something was read after an error")
	}
	r.Skip()
	r.End()
	if r.Err() != first { //nolint:errorlint // it must be the very same
		t.Errorf("%v became %v", first, r.Err())
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	o := BeginObject([]byte("x"))
	o.Int("a", 0)
	o.OmitInt("b", 0)
	o.OmitInt("c", -1)
	o.String("d", "")
	o.OmitString("e", "")
	o.OmitString("f", "<\x01")
	o.OmitBool("g", false)
	o.OmitBool("h", true)
	if got, want := string(o.End()), `x{"a":0,"c":-1,"d":"","f":"\u003c\u0001","h":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	empty := BeginObject(nil)
	if got := string(empty.End()); got != "{}" {
		t.Errorf("got %s", got)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range texts {
		f.Add([]byte(s))
		f.Add([]byte(`{"a":[` + s + `,"b"]}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkRead(t, data)
		checkNumbers(t, data)
		checkWrite(t, string(data))
	})
}

func BenchmarkAppendString(b *testing.B) {
	s := strings.Repeat("echo \"hello world\" > /dev/null\n", 66)
	b.SetBytes(int64(len(s)))
	buf := make([]byte, 0, 2*len(s))
	for b.Loop() {
		buf = AppendHTMLString(buf[:0], s)
	}
}

func BenchmarkAppendText(b *testing.B) {
	text := AppendHTMLString(nil, strings.Repeat("echo \"hello world\" > /dev/null\n", 66))
	b.SetBytes(int64(len(text)))
	buf := make([]byte, 0, len(text))
	for b.Loop() {
		r := NewReader(text)
		buf = r.AppendText(buf[:0])
	}
}
