#!/bin/bash
# Eight tasks, at most two at a time; each writes a file of its own.
#SBATCH --job-name=squares
#SBATCH --array=1-8%2
#SBATCH --mem=64M
#SBATCH --time=1:00
#SBATCH --output=squares-%A_%a.out

n=$SLURM_ARRAY_TASK_ID
echo "$n squared is $((n * n)); task $n of $SLURM_ARRAY_TASK_COUNT"
