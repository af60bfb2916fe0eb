/* The check that the programs of this directory share. */
#include <stdio.h>

static int rank, size;

/* Prints a line that begins with WRONG where a condition does not hold. */
#define CHECK(condition)                                                      \
    do {                                                                      \
        if (!(condition))                                                     \
            printf("WRONG rank %d line %d: %s\n", rank, __LINE__, #condition); \
    } while (0)
