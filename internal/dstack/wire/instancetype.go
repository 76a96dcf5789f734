package wire

// InstanceType is what a machine has.
type InstanceType struct {
	Name      string            `json:"name"`
	Resources InstanceResources `json:"resources"`
}

// InstanceResources are the resources of a machine, or of blocks of it.
type InstanceResources struct {
	CPUs        int32         `json:"cpus"`
	MemoryMiB   int64         `json:"memory_mib"`
	GPUs        []InstanceGPU `json:"gpus"`
	Spot        bool          `json:"spot"`
	Disk        InstanceDisk  `json:"disk"`
	CPUArch     *string       `json:"cpu_arch"` // x86, arm
	Description string        `json:"description"`
}

// InstanceGPU is one GPU.
type InstanceGPU struct {
	Vendor    string `json:"vendor"`
	Name      string `json:"name"`
	MemoryMiB int64  `json:"memory_mib"`
}

// InstanceDisk is the disk of a machine. A size of 0 is not known.
type InstanceDisk struct {
	SizeMiB int64 `json:"size_mib"`
}
