/* Every rank adds up all ranks and hands its own to the next: what it prints is known beforehand.
 * With an argument rank 1 then ends the program for all. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, size, sum = 0, from = -1, length;
	char name[MPI_MAX_PROCESSOR_NAME];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_processor_name(name, &length);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	printf("rank %d of %d on %s: sum %d, from %d\n", rank, size, name, sum, from);
	MPI_Barrier(MPI_COMM_WORLD);
	if (argc > 1) {
		if (rank == 1)
			MPI_Abort(MPI_COMM_WORLD, 7);
		MPI_Barrier(MPI_COMM_WORLD);
		printf("rank %d lives on after that\n", rank);
	}
	MPI_Finalize();
	return 0;
}
