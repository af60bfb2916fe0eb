/* For MPI programs that run under `sme mpi run --compute declared`: the time of a computation, in
 * seconds, on the simulated machine. Elsewhere it does nothing, and the library need not be there.
 */
#ifndef SME_H
#define SME_H
extern void sme_compute(double seconds) __attribute__((weak));
#define SME_COMPUTE(seconds) (sme_compute ? sme_compute(seconds) : (void)0)
#endif
