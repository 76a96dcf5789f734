package config

// Resources is what one node of a run must have.
type Resources struct {
	CPU     CPU       `json:"cpu"`
	Memory  SizeRange `json:"memory"` // GB
	ShmSize *Float    `json:"shm_size"`
	GPU     *GPU      `json:"gpu"`
	Disk    *Disk     `json:"disk"`
}

// CPU is a count of CPUs of an architecture.
type CPU struct {
	Arch  *string `json:"arch"` // x86, arm
	Count Range   `json:"count"`
}

// GPU is a count of GPUs with properties.
type GPU struct {
	Vendor            *string    `json:"vendor"` // nvidia, amd, google, intel, tenstorrent
	Name              []string   `json:"name"`   // any of them
	Count             Range      `json:"count"`
	Memory            *SizeRange `json:"memory"`       // GB of each
	TotalMemory       *SizeRange `json:"total_memory"` // GB of all
	ComputeCapability *[2]int    `json:"compute_capability"`
}

// Disk is a size of disk in GB.
type Disk struct {
	Size SizeRange `json:"size"`
}

// Range is a range of whole numbers; nil ends are open.
type Range struct {
	Min *int64 `json:"min"`
	Max *int64 `json:"max"`
}

// SizeRange is a range of sizes in GB; nil ends are open.
type SizeRange struct {
	Min *Float `json:"min"`
	Max *Float `json:"max"`
}

// DefaultResources is what a run that says nothing asks for.
func DefaultResources() Resources {
	return Resources{
		CPU: CPU{Count: from(2)}, Memory: fromSize(8), GPU: &GPU{Count: from(0)},
		Disk: &Disk{Size: fromSize(100)},
	}
}

func from(n int64) Range          { return Range{Min: &n} }
func fromSize(gb Float) SizeRange { return SizeRange{Min: &gb} }
