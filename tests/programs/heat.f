C     Heat in a rod whose ends are kept at 1 and 0: each rank has a part
C     of it, and the cells beside it of its neighbours. Says WRONG if the
C     temperatures are not those that one process computes.
      PROGRAM HEAT
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER CELLS, STEPS
      PARAMETER (CELLS = 24, STEPS = 200)
      DOUBLE PRECISION U(0:CELLS+1), V(0:CELLS+1)
      DOUBLE PRECISION W(0:64*CELLS+1), X(0:64*CELLS+1)
      DOUBLE PRECISION OWN, TOTAL, ALONE, FAR, WORST
      INTEGER RANK, RANKS, LEFT, RIGHT, IERR, I, N, STEP, FIRST
      INTEGER REQ(4), STATS(MPI_STATUS_SIZE,4)
      EXTERNAL MOVE

      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, RANKS, IERR)
      IF (RANKS .GT. 64) CALL MPI_ABORT(MPI_COMM_WORLD, 2, IERR)
      LEFT = RANK - 1
      IF (RANK .EQ. 0) LEFT = MPI_PROC_NULL
      RIGHT = RANK + 1
      IF (RIGHT .EQ. RANKS) RIGHT = MPI_PROC_NULL

      DO 10 I = 0, CELLS + 1
         U(I) = 0
   10 CONTINUE
      IF (RANK .EQ. 0) U(0) = 1
      DO 30 STEP = 1, STEPS
         CALL MPI_IRECV(U(0), 1, MPI_DOUBLE_PRECISION, LEFT, 1,
     &                  MPI_COMM_WORLD, REQ(1), IERR)
         CALL MPI_IRECV(U(CELLS+1), 1, MPI_DOUBLE_PRECISION, RIGHT, 2,
     &                  MPI_COMM_WORLD, REQ(2), IERR)
         CALL MPI_ISEND(U(CELLS), 1, MPI_DOUBLE_PRECISION, RIGHT, 1,
     &                  MPI_COMM_WORLD, REQ(3), IERR)
         CALL MPI_ISEND(U(1), 1, MPI_DOUBLE_PRECISION, LEFT, 2,
     &                  MPI_COMM_WORLD, REQ(4), IERR)
         IF (MOD(STEP, 2) .EQ. 0) THEN
            CALL MPI_WAITALL(4, REQ, MPI_STATUSES_IGNORE, IERR)
         ELSE
            CALL MPI_WAITALL(4, REQ, STATS, IERR)
            IF (LEFT .NE. MPI_PROC_NULL) THEN
               IF (STATS(MPI_SOURCE,1) .NE. LEFT .OR.
     &             STATS(MPI_TAG,1) .NE. 1)
     &            WRITE (*,*) 'WRONG: a status at rank ', RANK
            END IF
            IF (RIGHT .NE. MPI_PROC_NULL) THEN
               IF (STATS(MPI_SOURCE,2) .NE. RIGHT .OR.
     &             STATS(MPI_TAG,2) .NE. 2)
     &            WRITE (*,*) 'WRONG: a status at rank ', RANK
            END IF
         END IF
         CALL MOVE(U, V, CELLS)
   30 CONTINUE

C     The whole rod, by each rank alone.
      N = RANKS * CELLS
      DO 40 I = 0, N + 1
         W(I) = 0
   40 CONTINUE
      W(0) = 1
      DO 50 STEP = 1, STEPS
         CALL MOVE(W, X, N)
   50 CONTINUE

      FIRST = RANK * CELLS
      OWN = 0
      FAR = 0
      DO 60 I = 1, CELLS
         OWN = OWN + U(I)
         FAR = MAX(FAR, ABS(U(I) - W(FIRST + I)))
   60 CONTINUE
      ALONE = 0
      DO 70 I = 1, N
         ALONE = ALONE + W(I)
   70 CONTINUE
      CALL MPI_ALLREDUCE(FAR, WORST, 1, MPI_DOUBLE_PRECISION, MPI_MAX,
     &                   MPI_COMM_WORLD, IERR)
      CALL MPI_REDUCE(OWN, TOTAL, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0,
     &                MPI_COMM_WORLD, IERR)
      IF (WORST .NE. 0) WRITE (*,*) 'WRONG: temperatures differ by ',
     &   WORST, ' at rank ', RANK
      IF (RANK .EQ. 0) THEN
         IF (ABS(TOTAL - ALONE) .GT. 1D-9)
     &      WRITE (*,*) 'WRONG: the sum is ', TOTAL, ', not ', ALONE
         WRITE (*,'(A,F10.6)') 'heat: sum of temperatures ', TOTAL
      END IF
      CALL MPI_FINALIZE(IERR)
      END

C     One step of a rod of N cells: V has room for the new temperatures.
      SUBROUTINE MOVE(U, V, N)
      INTEGER N, I
      DOUBLE PRECISION U(0:N+1), V(0:N+1)
      DO 10 I = 1, N
         V(I) = U(I) + 0.25D0 * (U(I-1) - 2 * U(I) + U(I+1))
   10 CONTINUE
      DO 20 I = 1, N
         U(I) = V(I)
   20 CONTINUE
      END
