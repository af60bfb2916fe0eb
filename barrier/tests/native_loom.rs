//! The native barriers under every interleaving and every memory order that the language allows,
//! with threads that sleep as early as they can. Only built with loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p sme-barrier --test native_loom --release`.
#![cfg(loom)]

#[path = "../../memory/tests/loom_model/mod.rs"]
mod loom_model;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loom::sync::atomic::AtomicU32;
use loom::thread;
use sme_barrier::native::{Barrier, Options};
use sme_barrier::{Algorithm, Spacing};
use sme_memory::native::{Protocol, Sound};

use loom_model::{NoWake, RelaxedSet, RelaxedWait, complaint, executions};

/// Every thread writes before each episode what all others read after it, without any order of its
/// own: a thread that finds something old has left early. Two sets in turns: what is read after an
/// episode is written again before the one after the next.
fn episodes<P: Protocol>(algorithm: Algorithm, threads: usize, episodes: u32) {
    let options = Options {
        spacing: Spacing::Packed,
        ..Options::of(algorithm)
    };
    let handles = Barrier::with_protocol::<P>(threads, options)
        .expect("a barrier for these threads")
        .handles();
    let data: Arc<[Vec<AtomicU32>; 2]> =
        Arc::new([(); 2].map(|()| (0..threads).map(|_| AtomicU32::new(0)).collect()));
    let mut programs = handles.into_iter().map(|mut handle| {
        let data = Arc::clone(&data);
        move || {
            for episode in 1..=episodes {
                let data = &data[episode as usize % 2];
                data[handle.id()].store(episode, Ordering::Relaxed);
                handle.wait();
                for other in data {
                    let there = other.load(Ordering::Relaxed);
                    assert_eq!(there, episode, "left early");
                }
            }
        }
    });
    let mut mine = programs.next().expect("a thread");
    let others: Vec<_> = programs.map(thread::spawn).collect();
    mine();
    for other in others {
        other.join().expect("a thread that ends");
    }
}

/// Checks `algorithm` and reports how many executions that were.
fn check(algorithm: Algorithm, threads: usize, count: u32, preemptions: Option<usize>) -> usize {
    let executions = executions(preemptions, move || {
        episodes::<Sound>(algorithm, threads, count);
    });
    let bound = preemptions.map_or_else(|| "all".to_owned(), |most| format!("<= {most}"));
    println!("{algorithm}, {threads} threads, {count} episodes, {bound} preemptions: {executions}");
    executions
}

#[test]
fn two_threads_one_episode_exhaustively() {
    for &algorithm in Algorithm::ALL {
        let executions = check(algorithm, 2, 1, None);
        assert!(executions > 50, "{algorithm}: only {executions}");
    }
}

#[test]
fn two_threads_two_episodes_exhaustively() {
    let executions = check(Algorithm::Dissemination, 2, 2, None);
    assert!(executions > 1_000, "only {executions}");
}

/// Where there are too many executions for a test of seconds: all with few preemptions.
#[test]
fn two_threads_two_episodes() {
    for algorithm in [Algorithm::FlagPhase, Algorithm::Tree, Algorithm::Pthread] {
        let executions = check(algorithm, 2, 2, Some(3));
        assert!(executions > 1_000, "{algorithm}: only {executions}");
    }
}

#[test]
fn three_threads_one_episode() {
    for &algorithm in Algorithm::ALL {
        let preemptions = match algorithm {
            Algorithm::FlagPhase | Algorithm::Tree => 3,
            _ => 2,
        };
        let executions = check(algorithm, 3, 1, Some(preemptions));
        assert!(executions > 500, "{algorithm}: only {executions}");
    }
}

#[test]
fn three_threads_two_episodes() {
    let executions = check(Algorithm::Tree, 3, 2, Some(2));
    assert!(executions > 1_000, "only {executions}");
}

#[test]
#[ignore = "minutes"]
fn two_threads_two_episodes_of_flag_phase_exhaustively() {
    assert!(check(Algorithm::FlagPhase, 2, 2, None) > 100_000);
}

#[test]
#[ignore = "minutes"]
fn two_threads_two_episodes_of_a_tree_exhaustively() {
    assert!(check(Algorithm::Tree, 2, 2, None) > 100_000);
}

#[test]
#[ignore = "hours"]
fn three_threads_one_episode_of_flag_phase_exhaustively() {
    assert!(check(Algorithm::FlagPhase, 3, 1, None) > 1_000_000);
}

/// The algorithms that live by flags alone.
const BY_FLAGS: [Algorithm; 5] = [
    Algorithm::FlagPhase,
    Algorithm::Flat,
    Algorithm::Tree,
    Algorithm::Dissemination,
    Algorithm::Butterfly,
];

/// loom must find `algorithm` wrong over a broken protocol, and say why.
fn caught<P: Protocol>(algorithm: Algorithm, why: &str) {
    let said = complaint(move || episodes::<P>(algorithm, 2, 1));
    assert!(said.contains(why), "{algorithm}: {said}");
}

#[test]
fn a_relaxed_store_in_set_is_caught() {
    for algorithm in BY_FLAGS {
        caught::<RelaxedSet>(algorithm, "left early");
    }
}

#[test]
fn a_relaxed_load_in_wait_is_caught() {
    for algorithm in BY_FLAGS {
        caught::<RelaxedWait>(algorithm, "left early");
    }
}

#[test]
fn a_missing_wake_is_caught() {
    for algorithm in BY_FLAGS {
        caught::<NoWake>(algorithm, "deadlock");
    }
}
