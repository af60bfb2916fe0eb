//! Jobs that cannot be run are refused, and say why.

use super::*;

fn job(machine: &str, ranks: u32) -> Job {
    let machine = Machine::builtin(machine).expect("a machine that is built in");
    let library = Library::of_mpi(&machine);
    Job::new(Arc::new(machine), library, ranks)
}

fn refused(job: &Job) -> String {
    let ended = job.run_mpi(Observe::default(), |_, _| async { Ok::<_, Error>(()) });
    ended.expect_err("the job is refused").to_string()
}

#[test]
fn jobs_have_a_core_for_each_rank() {
    for (machine, most) in [("mppa256", 16), ("xeon-e5-2650", 16), ("scc", 48)] {
        for ranks in [0, most + 1, 400] {
            let job = job(machine, ranks);
            let expected = format!("{ranks} ranks: a job on machine {machine} has 1 to {most}");
            assert_eq!(refused(&job), expected);
            assert_eq!(job.check().expect_err("refused").to_string(), expected);
            // Not divided by the ranks of a node, which has none.
            assert_eq!(job.nodes() == 0, ranks == 0);
        }
        assert!(job(machine, most).check().is_ok());
    }
}

#[test]
fn a_library_without_mpi_runs_no_program_of_mpi() {
    let job = Job {
        library: Library::Rcce,
        ..job("scc", 2)
    };
    let expected = "channel rcce has no MPI calls: choose another, or what Library::of_mpi returns";
    assert_eq!(refused(&job), expected);
}
