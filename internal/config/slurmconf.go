package config

// SlurmConf is what a slurm.conf says, for scontrol show config. It is no setting: what has an effect became one.
type SlurmConf struct {
	File  string            // its path; empty: there is none
	Shown map[string]string // key in Slurm's spelling, value in the words in which Slurm shows it, without its unit
}
