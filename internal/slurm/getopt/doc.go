// Package getopt reads a command line by the rules of GNU getopt_long, which every Slurm command
// and every #SBATCH line follows.
//
// Long options may be cut to any prefix that fits one option only; a value follows "=" or, where
// it is required, in the next word; a value that is optional must follow "=" (or stick to the
// short letter). Short options may be clustered (-Xv, -N2). "--" ends the options. With Permute
// operands may stand between options; without it the first operand ends them, as sbatch, salloc
// and srun need it: what follows belongs to the user's program.
//
// An *Error reads exactly as glibc 2.36 prints it after the program's name, so that
//
//	sbatch: unrecognized option '--nonsense'
//
// needs no table of texts in the commands.
package getopt
