package slurm

// For tests of the table of options.

func OptionOf(t Tool, long string) *Option    { return optionOf(t, long) }
func Options() []Option                       { return options() }
func (o *Option) VariablesOf(t Tool) []string { return o.variables(t) }
