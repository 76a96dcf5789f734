package parcel

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tarBlock is what the parts of a tar are rounded up to.
const tarBlock = 512

// Below gives a parcel whose relative items go below base, which is absolute or below "~".
func Below(data []byte, base string) ([]byte, error) {
	list, rest, err := targets(data)
	if err != nil {
		return nil, err
	}
	for i, to := range list {
		if IsRelative(to) {
			list[i] = path.Join(base, to)
		}
	}
	return relist(list, rest)
}

// IsRelative reports whether a path is relative to the working directory.
func IsRelative(to string) bool {
	return !filepath.IsAbs(to) && to != "~" && !strings.HasPrefix(to, "~/")
}

// Stage lays the items of a parcel out in a folder of their own and gives each with where it goes.
func Stage(data []byte, dir string) ([]Item, error) {
	list, rest, err := targets(data)
	if err != nil {
		return nil, err
	}
	items, places := make([]Item, len(list)), make([]string, len(list))
	for i, to := range list {
		places[i] = filepath.Join(dir, strconv.Itoa(i))
		items[i] = Item{Local: places[i], Path: to}
	}
	if data, err = relist(places, rest); err != nil {
		return nil, err
	}
	return items, Unpack(data, dir, dir)
}

// relist puts a list of places before the members of a parcel.
func relist(list []string, members []byte) ([]byte, error) {
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	var head bytes.Buffer
	w := tar.NewWriter(&head)
	err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: listName, Size: int64(len(text)), Mode: 0o600})
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Flush()
	}
	return append(head.Bytes(), members...), err
}

// targets reads where the items of a parcel go, and gives what follows that list.
func targets(data []byte) (list []string, rest []byte, err error) {
	src := bytes.NewReader(data)
	r := tar.NewReader(src)
	h, err := r.Next()
	if err != nil || h.Name != listName {
		return nil, nil, ErrBad
	}
	at := len(data) - src.Len()
	if err := json.NewDecoder(r).Decode(&list); err != nil {
		return nil, nil, ErrBad
	}
	if slices.ContainsFunc(list, func(to string) bool { return len(to) > maxPath }) {
		return nil, nil, fmt.Errorf("%w: a path has more than %d bytes", ErrBad, maxPath)
	}
	end := int64(at) + (h.Size+tarBlock-1)/tarBlock*tarBlock
	if end > int64(len(data)) {
		return nil, nil, ErrBad
	}
	return list, data[end:], nil
}
