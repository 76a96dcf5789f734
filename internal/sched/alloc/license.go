package alloc

import "bireme.dev/bireme/internal/core"

// LicenseCount is how many of a license a list has.
func LicenseCount(list []core.License, name string) int64 {
	for i := range list {
		if list[i].Name == name {
			return list[i].Total
		}
	}
	return 0
}
