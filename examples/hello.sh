#!/bin/bash
#SBATCH --job-name=hello
#SBATCH --cpus-per-task=1
#SBATCH --mem=64M
#SBATCH --time=1:00
#SBATCH --output=hello-%j.out

echo "Hello from job $SLURM_JOB_ID on $(hostname), with $SLURM_CPUS_PER_TASK CPU."
echo "It was submitted in $SLURM_SUBMIT_DIR."
