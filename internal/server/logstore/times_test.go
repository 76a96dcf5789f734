package logstore

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestPages: pages give every byte of a log once, in order, with growing times; backwards the same the other way round.
func TestPages(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir())
	s.KeepTimes()
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	k := Key{Job: 7, Attempt: 1}
	var want bytes.Buffer
	appendText := func(text string) {
		at := int64(want.Len())
		want.WriteString(text)
		if have, err := s.Append(k, "ann", at, []byte(text), false); err != nil || have != int64(want.Len()) {
			t.Fatalf("%d %v", have, err)
		}
	}
	for i := range 3000 {
		appendText(fmt.Sprintf("line %d %s\n", i, bytes.Repeat([]byte("x"), i%200)))
	}
	appendText(string(bytes.Repeat([]byte("long "), 40_000)) + "\nno end")
	for _, limit := range []int{1, 3, 1000} {
		var got bytes.Buffer
		last := time.Time{}
		for from := int64(-1); ; {
			list, next, err := s.Page(k, PageQuery{From: from, Limit: limit})
			if err != nil || len(list) == 0 {
				t.Fatalf("%v %v", list, err)
			}
			for i, p := range list {
				if p.Offset != int64(got.Len()) || i > 0 && !p.At.After(last) {
					t.Fatalf("piece at %d of %v, after %v", p.Offset, p.At, last)
				}
				last = p.At
				got.Write(p.Data)
			}
			if from = next; next < 0 {
				break
			}
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatalf("%d of %d bytes", got.Len(), want.Len())
		}
		var back [][]byte
		for from := int64(-1); ; {
			list, next, err := s.Page(k, PageQuery{From: from, Limit: limit, Descending: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range list {
				back = append(back, p.Data)
			}
			if from = next; next < 0 {
				break
			}
		}
		slices.Reverse(back)
		if !bytes.Equal(bytes.Join(back, nil), want.Bytes()) {
			t.Fatal("backwards it is something else")
		}
	}
	for name, q := range map[string]PageQuery{
		"later":  {From: -1, Limit: 10, Since: time.Now().Add(time.Hour)},
		"before": {From: -1, Limit: 10, Until: time.Now().Add(-time.Hour)},
	} {
		if list, next, err := s.Page(k, q); err != nil || len(list) != 0 || next >= 0 {
			t.Errorf("%s: %d pieces, %d, %v", name, len(list), next, err)
		}
	}
	list, _, err := s.Page(k, PageQuery{From: -1, Limit: 10, Since: time.Now().Add(-time.Hour)})
	if err != nil || len(list) == 0 {
		t.Errorf("of the last hour: %v", err)
	}
	if list, next, err := s.Page(Key{Job: 8}, PageQuery{From: -1, Limit: 10}); err != nil || len(list) != 0 || next >= 0 {
		t.Errorf("a log that is not there: %v %d %v", list, next, err)
	}
}
