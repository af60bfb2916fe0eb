//! Clocks of tiles and voltages of islands that change during a run, and the energy of it.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use sme_memory::{
    Blocks, Cacheable, Memory, Own, Place, Processes, Refused, Register, Route, Scaling, Spawn,
    Tagged, TestAndSet, Timer, Until,
};
use sme_sim::machine::{Machine, Readable, Setup};
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

/// Cores of the same tile.
const TILE: [u32; 2] = [0, 1];

fn machine(set: &[(&str, &str)]) -> Machine {
    Machine::builtin("scc-800").unwrap().with(set).unwrap()
}

/// Runs `program` on so many cores; the machine afterwards.
fn run<F>(machine: &Machine, cores: u32, program: impl Fn(ThreadMemory) -> F) -> Box<dyn Readable>
where
    F: Future<Output = ()> + Send + 'static,
{
    let setup = Setup::new(machine.shape(), cores, 1).with_room(4);
    let mut built = machine
        .build(setup, |memory, _, _| program(memory))
        .unwrap();
    built.run(1, |_| {}).unwrap();
    built
}

/// The times of parts of a core's work, each as a span of this name.
const WORKS: &str = "works";

/// Operations of all kinds, each alone in a span.
async fn works(memory: &ThreadMemory, other: u32) {
    let me = memory.node();
    let place = |node, offset| Place { node, offset };
    let mut number = 0;
    macro_rules! step {
        ($operation:expr) => {
            memory.begin(Span::new(WORKS, number)).await;
            let _ = $operation.await;
            memory.end(Span::new(WORKS, number)).await;
            number += 1;
        };
    }
    let flag = |node| memory.flag(place(node, 128), Route::Global);
    let word = |node, offset, route| memory.word(place(node, offset), route);
    step!(memory.read(flag(me)));
    step!(memory.read(flag(other)));
    step!(memory.set(flag(me), 1));
    step!(memory.wait(flag(me), Until::Is(1)));
    step!(memory.set(flag(other), 1));
    step!(memory.load(word(me, 1 << 16, Route::Global)));
    step!(memory.load(word(me, 1 << 16, Route::Cached)));
    step!(memory.load(word(me, 1 << 16, Route::Cached)));
    step!(memory.load(word(other, 1 << 17, Route::Cached)));
    step!(memory.store(word(other, 1 << 17, Route::Cached), 7));
    step!(memory.store(word(other, 1 << 18, Route::Tagged), 7));
    step!(memory.fence());
    step!(memory.invalidate_tagged());
    step!(memory.now());
    let register = Register {
        node: other,
        number: 0,
    };
    step!(memory.test_and_set(register));
    step!(memory.clear(register));
    step!(memory.put(
        word(other, 1024, Route::Tagged),
        &[3; 16],
        Some(Own(1 << 20))
    ));
    step!(memory.delay(Time::from_ns(800)));
    step!(memory.flush(word(other, 1 << 17, Route::Cached)));
    step!(memory.write_back_invalidate());
    let child = memory.spawn(None, |_| async {}).await;
    step!(memory.join(child));
    let _ = number;
}

fn times(machine: &dyn Readable) -> Vec<Time> {
    let spans = machine.spans().called(WORKS).iter();
    spans
        .map(|span| span.last_end.since(span.first_begin))
        .collect()
}

/// A tile whose clock is divided takes as long as on a machine all of whose cores have that clock,
/// but for rounding; the core of another tile as long as ever.
#[test]
fn a_tile_runs_at_the_clock_of_its_divider() {
    for (divider, clock) in [(4, "400MHz"), (8, "200MHz"), (16, "100MHz")] {
        let fast = machine(&[]);
        let slow = machine(&[("core.clock", clock)]);
        let tuned = run(&fast, 1, |memory| async move {
            memory.set_divider(divider).await.unwrap();
            works(&memory, 9).await;
        });
        let fixed = run(&slow, 1, |memory| async move { works(&memory, 9).await });
        let plain = run(&fast, 1, |memory| async move { works(&memory, 9).await });
        let (tuned, fixed, plain) = (times(&*tuned), times(&*fixed), times(&*plain));
        assert_eq!(tuned.len(), 21);
        for (step, (&tuned, &fixed)) in tuned.iter().zip(&fixed).enumerate() {
            let by_file = match step {
                // A time in a machine file is one at the base clock.
                17 => Time::from_ns(800).scaled(divider, 2),
                _ => fixed,
            };
            if step == 20 || step == 19 {
                assert!(tuned > plain[step], "{step}");
                continue;
            }
            let apart = tuned.as_ps().abs_diff(by_file.as_ps());
            // Of each of up to a few hundred accesses a picosecond.
            assert!(apart <= 600, "{divider}, step {step}: {tuned} {by_file}");
        }
        let aside = |divider: Option<u32>| {
            let ran = run(&fast, 3, |memory| async move {
                match (memory.node(), divider) {
                    (0, Some(divider)) => memory.set_divider(divider).await.unwrap(),
                    (2, _) => {
                        memory.delay(Time::from_ns(5_000)).await;
                        works(&memory, 9).await;
                    }
                    _ => {}
                }
            });
            times(&*ran)
        };
        assert_eq!(aside(Some(divider)), aside(None));
    }
}

/// A core that computes while the other core of its tile changes the clock goes on with what is
/// left.
#[test]
fn computing_goes_on_at_the_new_clock() {
    let machine = machine(&[]);
    let ran = run(&machine, 2, |memory| async move {
        match memory.node() {
            0 => {
                memory.begin(Span::new(WORKS, 0)).await;
                memory.delay(Time::from_ns(100_000)).await;
                memory.end(Span::new(WORKS, 0)).await;
            }
            _ => {
                memory.delay(Time::from_ns(40_000)).await;
                memory.set_divider(8).await.unwrap();
                memory.delay(Time::from_ns(10_000)).await;
                memory.set_divider(2).await.unwrap();
            }
        }
    });
    // 40 us, 10 us of which take 40 us, 50 us; commands take some tens of nanoseconds.
    let took = times(&*ran)[0].as_us();
    assert!((130.0..130.5).contains(&took), "{took}");
}

#[test]
fn a_clock_too_fast_for_the_voltage_is_refused() {
    let results: Arc<Mutex<Vec<Result<(), Refused>>>> = Arc::default();
    let tell = Arc::clone(&results);
    run(&machine(&[]), 1, move |memory| {
        let tell = Arc::clone(&tell);
        async move {
            let too_low = memory.set_voltage(700).await;
            memory.set_divider(4).await.unwrap();
            let low = memory.set_voltage(700).await;
            let too_fast = memory.set_divider(3).await;
            let slower = memory.set_divider(16).await;
            let back = memory.set_voltage(800).await;
            let third = memory.set_divider(3).await;
            tell.lock()
                .extend([too_low, low, too_fast, slower, back, third]);
        }
    });
    let results = std::mem::take(&mut *results.lock());
    let refused = |kilohertz, millivolts| {
        Err(Refused {
            tile: 0,
            kilohertz,
            millivolts,
        })
    };
    let expected = [
        refused(800_000, 700),
        // Tiles 1, 6 and 7 of the island still have the base clock.
        Err(Refused {
            tile: 1,
            kilohertz: 800_000,
            millivolts: 700,
        }),
        Ok(()),
        Ok(()),
        Err(Refused {
            tile: 1,
            kilohertz: 800_000,
            millivolts: 800,
        }),
        Ok(()),
    ];
    assert_eq!(results, expected);
}

/// All tiles of an island that slow down, a lower voltage, and the way back; the regulator takes
/// one command after the other.
#[test]
fn the_regulator_takes_its_time() {
    let ends: Arc<Mutex<Vec<(u32, u64)>>> = Arc::default();
    let tell = Arc::clone(&ends);
    let ran = run(&machine(&[]), 20, move |memory| {
        let tell = Arc::clone(&tell);
        async move {
            let core = memory.node();
            if core % 2 == 0 {
                memory.set_divider(4).await.unwrap();
            }
            memory.delay(Time::from_ns(1_000)).await;
            // Two islands at once.
            if core == 0 || core == 4 {
                memory.set_voltage(700).await.unwrap();
                let at = memory.now().await;
                tell.lock().push((core, at));
            }
            if core == 0 {
                let refused = memory.set_divider(2).await.unwrap_err();
                assert_eq!((refused.tile, refused.millivolts), (0, 700));
                memory.set_voltage(1100).await.unwrap();
                memory.set_divider(2).await.unwrap();
                let at = memory.now().await;
                tell.lock().push((core, at));
            }
        }
    });
    let ends = std::mem::take(&mut *ends.lock());
    let cores: Vec<u32> = ends.iter().map(|&(core, _)| core).collect();
    assert_eq!(cores.len(), 3);
    assert_eq!(cores[2], 0);
    for (&(_, at), millis) in ends.iter().zip([1, 2, 3]) {
        let expected = millis * 1_000_000;
        assert!((expected..expected + 20_000).contains(&at), "{at}");
    }
    // The other island stays at 0.7 V to the end of the run.
    let energy = ran.energy().unwrap();
    let at = |island| ends[..2].iter().find(|end| end.0 == island).unwrap().1;
    let end = energy.until.as_ps() / 1_000;
    let expected = 8 * (end - at(4)) + 8 * (3_000_000 - at(0));
    let lowered = energy.lowered.as_ps() / 1_000;
    assert!(
        lowered.abs_diff(expected) < 8 * 40_000,
        "{lowered} {expected}"
    );
    assert!(energy.slowed > energy.lowered);
}

/// The published power of cores at two points, of one core: parts with and without the clock, at
/// `volts` and `gigahertz`; by hand from the two equations.
fn watts(volts: f64, gigahertz: f64) -> (f64, f64) {
    let (fast, slow) = (1.14_f64.powi(2), 0.7_f64.powi(2) * 0.125);
    let switching = (87.7 * 0.7 - 5.1 * 1.14) / (fast * 0.7 - slow * 1.14);
    let amperes = (5.1 - slow * switching) / 0.7;
    (
        switching * volts * volts * gigahertz / 48.0,
        amperes * volts / 48.0,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The energy of a core that executes and is halted in turn while its tile's clock changes,
    /// against the sum over its schedule.
    #[test]
    fn energy_is_the_integral_of_the_schedule(
        steps in prop::collection::vec((2..17_u32, 100..2000_u64, 100..2000_u64), 1..6),
        halted in 0..101_u32,
    ) {
        let percent = halted.to_string();
        let machine = machine(&[("power.halted", percent.as_str())]);
        let schedule = steps.clone();
        let ran = run(&machine, 2, move |memory| {
            let schedule = schedule.clone();
            async move {
                if memory.node() == 1 {
                    return;
                }
                // From here on the core is given to one of its threads, or halted.
                let child = memory.spawn(None, |_| async {}).await;
                memory.join(child).await;
                for (divider, executes_us, sleeps_us) in schedule {
                    memory.set_divider(divider).await.unwrap();
                    memory.delay(Time::from_ns(1_000 * executes_us)).await;
                    memory.alarm(1_000 * sleeps_us, 0).await;
                    memory.take_signal().await;
                }
            }
        });
        let energy = ran.energy().unwrap();
        // The second core is halted from the begin on.
        let halted = f64::from(halted) / 100.0;
        let mut expected = [0.0, 0.0];
        for &(divider, executes_us, sleeps_us) in &steps {
            let (switching, rest) = watts(1.1, 0.8 * 2.0 / f64::from(divider));
            // Programs name the time of a computation at the base clock.
            let executes = executes_us as f64 * 1e-6 * f64::from(divider) / 2.0;
            let sleeps = sleeps_us as f64 * 1e-6;
            expected[0] += executes * switching + halted * sleeps * switching;
            expected[1] += halted * (executes + sleeps) * switching;
            expected.iter_mut().for_each(|sum| *sum += (executes + sleeps) * rest);
        }
        // Calls of the system: the child's start and end, and an alarm, a sleep and a wake each
        // step, at the slowest clock and the power of the fastest.
        let (switching, rest) = watts(1.1, 0.8);
        let bound = 300e-6 * (1 + steps.len()) as f64 * (switching + rest);
        for core in TILE {
            let (found, sum) = (energy.cores_j[core as usize], expected[core as usize]);
            prop_assert!((found - sum).abs() <= bound, "core {core}: {found} J, {sum} J");
        }
        let parts = energy.all_cores_j() + energy.mesh_j + energy.memory_j + energy.clock_j;
        prop_assert!((energy.total_j() - parts).abs() < 1e-12);
    }
}
