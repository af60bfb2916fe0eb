/* A rank looks for messages in each way that MPI has, and for the end of a reduction, while the
   other one takes its time; the times at which it has them are printed, and how often it has
   looked. With an argument no two looks in a row are alike: of looks that are, the process makes
   some by itself, and their times must be the same. */
#include <stdio.h>

#include <mpi.h>

enum { WAYS = 5, PAUSE_US = 80 };

/* Looks for a message once more; returns whether it is there. */
static int look(int way, MPI_Request *request, int *flag, int *index, MPI_Status *status) {
  switch (way) {
  case 0:
    MPI_Iprobe(1, way, MPI_COMM_WORLD, flag, status);
    return *flag;
  case 1:
    MPI_Test(request, flag, status);
    return *flag;
  case 2:
    MPI_Testall(1, request, flag, status);
    return *flag;
  case 3:
    MPI_Testany(1, request, index, flag, status);
    if (!*flag && *index != MPI_UNDEFINED)
      printf("WRONG: index %d\n", *index);
    return *flag;
  default:
    MPI_Testsome(1, request, flag, index, status);
    return *flag;
  }
}

/* Waits for a while. */
static void pause_us(int us) {
  const double until = MPI_Wtime() + us * 1e-6;
  while (MPI_Wtime() < until)
    ;
}

static void add(void *in, void *into, int *count, MPI_Datatype *type) {
  for (int i = 0; i < *count; i++)
    ((double *)into)[i] += ((double *)in)[i];
}

/* A reduction in which looks call a function of the program's, with data that are mapped apart. */
static void reduction(int me, int apart) {
  enum { COUNT = 40000 };
  static double data[COUNT], sum[COUNT];
  MPI_Op op;
  MPI_Request request;
  MPI_Op_create(add, 0, &op);
  for (int i = 0; i < COUNT; i++)
    data[i] = i;
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 1)
    pause_us(PAUSE_US);
  MPI_Iallreduce(data, sum, COUNT, MPI_DOUBLE, op, MPI_COMM_WORLD, &request);
  int flags[2] = {0, 0};
  long looks = 0;
  do {
    looks++;
    MPI_Test(&request, &flags[apart ? looks % 2 : 0], MPI_STATUS_IGNORE);
  } while (!flags[apart ? looks % 2 : 0]);
  if (sum[COUNT - 1] != 2.0 * (COUNT - 1))
    printf("WRONG: %f\n", sum[COUNT - 1]);
  if (me == 0)
    printf("sum %.9f %ld\n", MPI_Wtime(), looks);
  MPI_Op_free(&op);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const int apart = argc > 1;
  int me;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  for (int way = 0; way < WAYS; way++) {
    int data = 10 + way;
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 1) {
      pause_us(PAUSE_US);
      MPI_Send(&data, 1, MPI_INT, 0, way, MPI_COMM_WORLD);
    } else if (me == 0) {
      MPI_Request request = MPI_REQUEST_NULL;
      int came = 0, flags[2] = {5, 5}, index = 5;
      MPI_Status statuses[2];
      if (way > 0)
        MPI_Irecv(&came, 1, MPI_INT, 1, way, MPI_COMM_WORLD, &request);
      long looks = 1;
      while (!look(way, &request, &flags[apart ? looks % 2 : 0], &index, statuses))
        looks++;
      const double time = MPI_Wtime();
      if (way == 0)
        MPI_Recv(&came, 1, MPI_INT, 1, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (came != data || request != MPI_REQUEST_NULL || looks < 20)
        printf("WRONG: %d came after %ld looks\n", came, looks);
      printf("%d %.9f %ld\n", way, time, looks);
    }
  }
  reduction(me, apart);
  MPI_Finalize();
  return 0;
}
