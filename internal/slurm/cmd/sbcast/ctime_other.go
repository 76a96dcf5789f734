//go:build !linux

package sbcast

import "os"

// changed is when a file last changed; only nodes ask, which run Linux.
func changed(info os.FileInfo) int64 { return info.ModTime().UnixNano() }
