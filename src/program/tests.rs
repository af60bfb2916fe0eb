//! Programs that cannot be run as they are set up, or do not say what their phases are.

use super::*;

/// Meets at two barriers, and names as many phases as it says.
struct Meets(usize);

impl Kernel for Meets {
    fn phases(&self) -> Vec<&'static str> {
        ["begin", "first", "second"][..self.0].to_vec()
    }

    fn initial(&self) -> Box<dyn Iterator<Item = (Place, u64)> + '_> {
        Box::new(std::iter::empty())
    }

    async fn run<T: Team<Memory: Atomic>>(&self, team: &mut T) {
        for _ in 0..2 {
            team.barrier().await;
        }
    }
}

fn program(nodes: u32, cores: u32) -> Program {
    let machine = Machine::builtin("sme-prototype").unwrap();
    Program::new(Arc::new(machine), nodes, cores)
}

fn told(program: &Program, names: usize) -> String {
    match program.run(&Arc::new(Meets(names)), |_, _| ()) {
        Ok((outcome, ())) => format!("{} phases", outcome.phases.len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn programs_have_a_core_for_each_thread_and_memory_on_each_node() {
    assert_eq!(told(&program(2, 16), 2), "1 phases");
    let refused = "--cores 17: a node of sme-prototype has 16 cores";
    assert_eq!(told(&program(2, 17), 2), refused);
    let elsewhere = Program {
        memory_nodes: 1,
        ..program(2, 1)
    };
    let refused = "--memory-nodes 1: the 2 nodes of --nodes are among them";
    assert_eq!(told(&elsewhere, 2), refused);
}

#[test]
fn the_number_of_threads_does_not_overflow() {
    let huge = Program {
        nodes: 1 << 20,
        cores: 1 << 20,
        ..program(2, 1)
    };
    assert_eq!(huge.threads(), u32::MAX);
}

#[test]
fn each_barrier_ends_a_phase_with_a_name() {
    assert_eq!(told(&program(2, 1), 2), "1 phases");
    for names in [0, 1, 3] {
        let expected = format!(
            "the kernel names {names} phases and its threads meet at 2 barriers: name what each \
             barrier ends"
        );
        assert_eq!(told(&program(2, 1), names), expected);
    }
}
