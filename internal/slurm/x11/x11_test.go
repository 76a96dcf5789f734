package x11

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestDisplay(t *testing.T) {
	for text, want := range map[string]display{
		":0": {number: 0}, ":10.1": {number: 10}, "unix:3": {number: 3}, "host/unix:3": {number: 3},
		"localhost:11.0": {host: "localhost", number: 11}, "[::1]:2": {host: "[::1]", number: 2},
		"/nowhere/org.x:0": {number: 0, path: "/nowhere/org.x"},
	} {
		if got, err := parseDisplay(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "here", "here:", ":x", ":-1", ":99999999"} {
		if got, err := parseDisplay(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestAuthority(t *testing.T) {
	list := []entry{
		{familyLocal, "here", "10", "OTHER", []byte("no cookie")},
		{0, "\x7f\x00\x00\x01", "10", cookieName, []byte("by address")},
		{familyLocal, "there", "10", cookieName, []byte("another machine's")},
		{familyLocal, "here", "10", cookieName, []byte("this one")},
		{familyWild, "", "11", cookieName, []byte("any address")},
	}
	var file []byte
	for i := range list {
		file = list[i].append(file)
	}
	got, err := parseAuthority(file)
	if err != nil || len(got) != len(list) || !slices.EqualFunc(got, list, func(a, b entry) bool {
		return a.family == b.family && a.addr == b.addr && a.number == b.number && a.name == b.name &&
			bytes.Equal(a.data, b.data)
	}) {
		t.Fatalf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		":10": "this one", ":11": "any address", "far:10": "by address", ":12": "",
	} {
		d, err := parseDisplay(text)
		if err != nil {
			t.Fatal(err)
		}
		if c := pick(got, d, "here"); string(c) != want {
			t.Errorf("%s: %q", text, c)
		}
	}
	for i := range file {
		_, _ = parseAuthority(file[:i]) // whatever is cut off
	}
}

// hello is an X client's first message.
func hello(order binary.ByteOrder, name, data string) []byte {
	first := byte('l')
	if order == binary.ByteOrder(binary.BigEndian) {
		first = 'B'
	}
	b := make([]byte, 12+pad(len(name))+pad(len(data)))
	b[0] = first
	order.PutUint16(b[2:], 11)
	order.PutUint16(b[6:], uint16(len(name)))
	order.PutUint16(b[8:], uint16(len(data)))
	copy(b[12:], name)
	copy(b[12+pad(len(name)):], data)
	return b
}

func TestGreet(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		got, err := greet(bytes.NewReader(hello(order, cookieName, "made")), []byte("made"), []byte("the real"))
		if want := hello(order, cookieName, "the real"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: %q, %v", order, got, err)
		}
		got, err = greet(bytes.NewReader(hello(order, cookieName, "made")), []byte("made"), nil)
		if want := hello(order, "", ""); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v, a display without a cookie: %q, %v", order, got, err)
		}
	}
	for what, b := range map[string][]byte{
		"no cookie": hello(binary.LittleEndian, "", ""), "a wrong one": hello(binary.LittleEndian, cookieName, "mode"),
		"another kind": hello(binary.LittleEndian, "XDM-AUTHORIZATION-1", "made"),
		"not X":        []byte("GET / HTTP/1.1\r\n\r\n"),
		"short":        {'l', 0}, "long": hello(binary.LittleEndian, strings.Repeat("x", 5000), "made"),
	} {
		if got, err := greet(bytes.NewReader(b), []byte("made"), []byte("the real")); err == nil {
			t.Errorf("%s is let in: %q", what, got)
		}
	}
}

func TestRelay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan []byte, 1)
	go func() { // the X server
		s, err := l.Accept()
		if err != nil {
			return
		}
		defer s.Close()
		_, _ = io.WriteString(s, "welcome")
		b, _ := io.ReadAll(s)
		served <- b
	}()
	ours, theirs := net.Pipe()
	over := make(chan error, 1)
	go func() {
		over <- relay(theirs, []byte("made"), []byte("real"), func() (net.Conn, error) {
			return net.Dial("tcp", l.Addr().String())
		})
	}()
	if _, err := ours.Write(append(hello(binary.LittleEndian, cookieName, "made"), "draw"...)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("welcome"))
	if _, err := io.ReadFull(ours, answer); err != nil || string(answer) != "welcome" {
		t.Errorf("%q, %v", answer, err)
	}
	_ = ours.Close()
	if want := append(hello(binary.LittleEndian, cookieName, "real"), "draw"...); !bytes.Equal(<-served, want) {
		t.Error("the server got something else")
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}
