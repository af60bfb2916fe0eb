//! A call, from the process's side: the turn goes to the simulator and comes back.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::hint::spin_loop;
use std::process::{exit, id};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::{env, mem, thread};

use crate::entries::WTIME;
use crate::slot::{
    CALLS, ENDS, INVOKES, IS_PATIENT, MEASURES, MOST_ARGUMENTS, MPICH, PROCESS, RETURNED, RETURNS,
    SIMULATOR, STANDARD, Slot, VARIABLE,
};
use crate::{clock, looks, output, system, writes};

/// Looks at the turn before a process sleeps until it has it.
const LOOKS: u32 = 200;

/// The same of a process that is patient: longer than most calls that concern no other rank.
const MANY_LOOKS: u32 = 2_000;

/// The process's slot, which the first call maps.
static SLOT: OnceLock<&Slot> = OnceLock::new();

/// The slot with the bell.
static BELL: OnceLock<&Slot> = OnceLock::new();

/// The thread that makes a call, one at a time; 0 if none does.
static OWNER: AtomicU64 = AtomicU64::new(0);

/// Whether that thread is in the midst of a call, and in no function of the program's that the call
/// has called.
static IS_WITHIN: AtomicBool = AtomicBool::new(false);

/// The result of the last MPI_Wtime, which functions for signals get in the midst of another call:
/// a rank begins at one second.
static TIME: AtomicU64 = AtomicU64::new(1.0_f64.to_bits());

/// Makes the call of this number; its result, as its type has it.
pub fn call(number: u32, arguments: &[usize]) -> u64 {
    let me = ME.with(|me| *me);
    // A function that the program has given the library makes calls from within one.
    if OWNER.load(Relaxed) == me {
        return match (IS_WITHIN.load(Relaxed), number) {
            (false, _) => make(number, arguments),
            (true, WTIME) => TIME.load(Relaxed),
            _ => end("a function for a signal makes a call while the thread is in another one"),
        };
    }
    while !owns(me) {
        // A child that was forked in the midst of a call would wait for a thread of its parent.
        if let Some(slot) = connected() {
            check_own(slot);
        }
        thread::yield_now();
    }
    make_alone(number, arguments)
}

/// The same if no call is being made, not even one that a signal has interrupted.
pub fn call_if_free(number: u32, arguments: &[usize]) -> Option<u64> {
    owns(ME.with(|me| *me)).then(|| make_alone(number, arguments))
}

/// Makes a thread the one that makes a call, unless there is one; whether it is now.
fn owns(me: u64) -> bool {
    OWNER.compare_exchange(0, me, Acquire, Relaxed).is_ok()
}

/// Makes a call as the thread that is now the one that does.
fn make_alone(number: u32, arguments: &[usize]) -> u64 {
    let result = make(number, arguments);
    OWNER.store(0, Release);
    result
}

thread_local! {
    /// A number that no other thread has, and not 0.
    static ME: u64 = NEXT.fetch_add(1, Relaxed);

    /// The processor time of this thread at which it went back to the program: what it takes to
    /// wait for the simulator is none of the program's.
    static LEFT_AT_NS: Cell<u64> = const { Cell::new(0) };
}

/// The number of the next thread that makes a call.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn make(number: u32, arguments: &[usize]) -> u64 {
    IS_WITHIN.store(true, Relaxed);
    let result = ask(slot(), number, arguments);
    IS_WITHIN.store(false, Relaxed);
    if number == WTIME {
        // A function for a signal may have read it meanwhile; times are in the order of their bits.
        TIME.fetch_max(result, Relaxed);
    }
    result
}

/// The result of a call, from the simulator if it is needed.
fn ask(slot: &Slot, number: u32, arguments: &[usize]) -> u64 {
    if looks::is_made(slot, number, arguments) {
        return 0;
    }
    slot.number.store(number, Relaxed);
    for (word, &argument) in slot.values.iter().zip(arguments) {
        word.store(argument as u64, Relaxed);
    }
    pass(slot, CALLS);
    loop {
        match slot.said.load(Relaxed) {
            RETURNS => {
                clock::remember_initializer(slot);
                looks::remember(slot, arguments);
                return slot.result.load(Relaxed);
            }
            INVOKES => {
                IS_WITHIN.store(false, Relaxed);
                let result = invoke(slot);
                IS_WITHIN.store(true, Relaxed);
                slot.result.store(result, Relaxed);
                pass(slot, RETURNED);
            }
            ENDS => {
                output::flush();
                system::end(1);
            }
            said => fail(&format!("the simulator says {said}")),
        }
    }
}

/// Calls the function that the simulator wants called.
fn invoke(slot: &Slot) -> u64 {
    let values: [u64; MOST_ARGUMENTS] = std::array::from_fn(|i| slot.values[i].load(Relaxed));
    let [a, b, c, d, e, f, g, h, ..] = values;
    let address = slot.function.load(Relaxed) as usize;
    type Function = extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64) -> u64;
    // SAFETY: the address is one that the program gave the library for a function with at most
    // eight arguments, all of them words or addresses; it leaves alone what it does not take.
    let function = unsafe { mem::transmute::<usize, Function>(address) };
    function(a, b, c, d, e, f, g, h)
}

/// Gives the simulator the turn, and waits until it comes back. The time that the program has
/// computed before is added up, if it is measured.
fn pass(slot: &Slot, said: u32) {
    let measures = slot.options.load(Relaxed) & MEASURES != 0;
    if measures {
        // In this order: the simulator may look, and must not take the time twice.
        slot.left_at_ns.store(0, SeqCst);
        let own = system::computed_ns().saturating_sub(LEFT_AT_NS.get());
        slot.computed_ns.fetch_add(own, SeqCst);
    }
    pass_turn(slot, said);
    writes::make(slot);
    if measures {
        let left_at_ns = system::computed_ns();
        LEFT_AT_NS.set(left_at_ns);
        slot.thread.store(system::thread_number(), SeqCst);
        slot.left_at_ns.store(left_at_ns, SeqCst);
    }
}

fn pass_turn(slot: &Slot, said: u32) {
    slot.said.store(said, Relaxed);
    slot.turn.store(SIMULATOR, SeqCst);
    if slot.simulator_sleeps.load(SeqCst) != 0
        && let Some(Slot { turn: bell, .. }) = BELL.get()
    {
        bell.fetch_add(1, SeqCst);
        system::wake(bell);
    }
    let is_patient = slot.options.load(Relaxed) & IS_PATIENT != 0;
    for _ in 0..if is_patient { MANY_LOOKS } else { LOOKS } {
        if slot.turn.load(Acquire) == PROCESS {
            return;
        }
        spin_loop();
    }
    slot.process_sleeps.store(1, SeqCst);
    while slot.turn.load(SeqCst) != PROCESS {
        system::sleep_while(&slot.turn, SIMULATOR);
    }
    slot.process_sleeps.store(0, Relaxed);
}

/// The slot, mapped by the first call of the process.
fn slot() -> &'static Slot {
    let slot = SLOT.get_or_init(connect);
    check_own(slot);
    slot
}

/// Ends a process that has inherited the slot of the one that has forked it.
fn check_own(slot: &Slot) {
    if slot.process.load(Relaxed) != id() {
        // The child must not write its parent's buffers, nor call its parent's functions for exit.
        end("a forked process makes a call: only the process that was started may");
    }
}

/// The slot, if the process has made a call.
pub fn connected() -> Option<&'static Slot> {
    SLOT.get().copied()
}

fn connect() -> &'static Slot {
    let Ok(given) = env::var(VARIABLE) else {
        fail("this program has to be started by `sme mpi run`");
    };
    let open = |path| OpenOptions::new().read(true).write(true).open(path);
    let slot = given.rsplit_once(':').and_then(|(path, number)| {
        let file = open(path).ok()?;
        let rank: usize = number.parse().ok()?;
        let slot = system::map(&file, rank.checked_add(1)?)?;
        let _ = BELL.set(system::map(&file, 0)?);
        Some(slot)
    });
    let Some(slot) = slot else {
        fail(&format!("{VARIABLE}={given} leads to no rank"));
    };
    if slot.process.load(Relaxed) != 0 {
        fail("another process of this rank has made calls: a rank is one process");
    }
    system::belongs_to_parent();
    let is_standard = system::is_loaded_as("libmpi_abi");
    let interface = if is_standard { STANDARD } else { MPICH };
    slot.interface.store(interface, Relaxed);
    slot.memory[0].store(system::malloc as *const () as u64, Relaxed);
    slot.memory[1].store(system::free as *const () as u64, Relaxed);
    slot.scratch_at.store(slot.scratch.as_ptr() as u64, Relaxed);
    slot.process.store(id(), Relaxed);
    clock::offer();
    slot
}

/// Ends the process with a message.
fn fail(why: &str) -> ! {
    tell(why);
    exit(1)
}

/// The same, but writes no buffers and calls none of the program's functions for exit.
fn end(why: &str) -> ! {
    tell(why);
    system::end(1)
}

fn tell(why: &str) {
    eprintln!("sme mpi: {}{why}", rank());
}

/// The rank of the process, for a message.
fn rank() -> String {
    let given = env::var(VARIABLE).unwrap_or_default();
    let number = given.rsplit_once(':').map(|(_, number)| number);
    number.map_or(String::new(), |number| format!("rank {number}: "))
}
