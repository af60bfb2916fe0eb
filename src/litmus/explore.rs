//! The runs of a test in a setting: which of them follow a way of the model, and what each shows.
//!
//! The model of memory knows every final state that it allows, and the ways there. Where some
//! threads share a node, every other run is directed: it takes the next outcome and a drawn way to
//! it, and its timing invites the machine to go that way. The other runs know nothing of the model,
//! and would show what it forbids. A run depends on the setting and its number only.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_barrier::Homes;
use sme_fft_demo::litmus::{Behaviours, FinalState, Test, TooLarge};
use sme_memory::{Capability, Route};
use sme_sim::kernel::peers::{Alone, Peers};
use sme_sim::machine::{Pinning, Readable, Setup, explained};
use sme_sim::observe::spans::SpanTimes;
use sme_sim::time::Time;

use super::direct::{self, Costs};
use super::roles::{self, LitmusPlan};
use super::timing::{self, Timing};
use super::{LitmusError, MemoryKind, Setting, Spread};

/// A test, what its memory may show, and what a rehearsal has told about the machine.
pub struct Exploration<'a> {
    setting: &'a Setting,
    test: Arc<Test>,
    behaviours: Result<Behaviours, TooLarge>,
    /// The final states that the model allows, those together that the test does not tell apart;
    /// none where no run is directed.
    aims: Vec<Vec<FinalState>>,
    /// With threads over the sockets, and filling one after the other.
    rehearsed: [Rehearsed; 2],
}

/// The findings of a rehearsal.
struct Rehearsed {
    /// The time by which a thread begins later than others because it hears of the beginning
    /// earlier.
    handicaps: Vec<Time>,
    costs: Costs,
}

impl<'a> Exploration<'a> {
    /// Searches what memory may show, and rehearses.
    ///
    /// # Errors
    /// [`LitmusError`] if the machine cannot be built, or a rehearsal does not end well.
    pub fn new(setting: &'a Setting, test: &Arc<Test>) -> Result<Self, LitmusError> {
        let behaviours = Behaviours::of(test, &setting.model(test));
        let is_directed = setting.memory != MemoryKind::Engine
            && setting.machine.capabilities().has(Capability::Caching);
        let aims = match &behaviours {
            Ok(behaviours) if is_directed => aims(test, behaviours),
            _ => Vec::new(),
        };
        let rehearse = |pinning| rehearse(setting, test, pinning, is_directed);
        let rehearsed = [rehearse(Pinning::Scatter)?, rehearse(Pinning::Compact)?];
        Ok(Self {
            setting,
            test: Arc::clone(test),
            behaviours,
            aims,
            rehearsed,
        })
    }

    /// Everything that the model allows.
    ///
    /// # Errors
    /// [`TooLarge`] if the test is too large for a search.
    pub fn behaviours(&self) -> Result<&Behaviours, TooLarge> {
        self.behaviours.as_ref().map_err(|&large| large)
    }

    /// The state in which run `run` ends.
    ///
    /// # Errors
    /// [`LitmusError::Failure`] if a thread's access faults or the simulation stops in a deadlock.
    pub fn run(&self, run: u32) -> Result<FinalState, LitmusError> {
        let (number, directed) = match self.aims.is_empty() {
            true => (run, None),
            false if run.is_multiple_of(2) => (run / 2, None),
            false => (run / 2, self.directed(run / 2)),
        };
        let timing = directed.unwrap_or_else(|| self.free(number));
        let performed = perform(
            self.setting,
            &self.test,
            Run {
                number: run,
                round: timing::round_of(number),
                handicaps: self.rehearsed(timing.pinning).handicaps.clone(),
                timing,
                rehearses: false,
            },
        )?;
        let reached = performed.1.reached.lock().clone();
        Ok(reached)
    }

    /// The timing of the run `number` of those that follow no way.
    fn free(&self, number: u32) -> Timing {
        let Setting {
            memory,
            seed,
            spread,
            ..
        } = *self.setting;
        // No other thread reads what a buffer holds where each has a node of its own.
        let races = spread == Spread::OneNode && !self.aims.is_empty();
        let costs = self.rehearsed(Pinning::Scatter).costs;
        let costs = races.then_some(costs);
        Timing::new(&self.test, memory, number, seed, costs)
    }

    fn rehearsed(&self, pinning: Pinning) -> &Rehearsed {
        match pinning {
            Pinning::Scatter => &self.rehearsed[0],
            Pinning::Compact => &self.rehearsed[1],
        }
    }

    /// The timing of the directed run `number`.
    fn directed(&self, number: u32) -> Option<Timing> {
        let seed = self.setting.seed;
        let aim = &self.aims[number as usize % self.aims.len()];
        let random = &mut Pcg32::new(seed, 0xd17 ^ u64::from(number) << 16);
        let state = &aim[random.next_u32() as usize % aim.len()];
        let behaviours = self.behaviours.as_ref().ok()?;
        let way = behaviours.way_to(state, |_| random.next_u32() as usize)?;
        let mut timing = match self.setting.spread {
            // No thread sees another's stores: only the copies that are kept differ.
            Spread::OnePerNode => self.free(number),
            Spread::OneNode => {
                let costs = self.rehearsed(Pinning::Scatter).costs;
                // A step takes effect within a miss; what the director expects is not exact.
                let slot = costs.miss.as_ps();
                let slot = Time::from_ps(slot + slot * u64::from(1 + random.next_u32() % 8) / 4);
                direct::timing(&self.test, &way, costs, slot)
            }
        };
        timing.kept = Some(way.kept);
        Some(timing)
    }
}

/// The states that `behaviours` has, those together of which `test` shows the same.
fn aims(test: &Test, behaviours: &Behaviours) -> Vec<Vec<FinalState>> {
    let observed = test.observed();
    let mut aims: BTreeMap<Vec<i32>, Vec<FinalState>> = BTreeMap::new();
    for state in behaviours.states() {
        let shown = observed.iter().map(|&what| state.value(what)).collect();
        aims.entry(shown).or_default().push(state.clone());
    }
    aims.into_values().collect()
}

/// Finds out when each thread hears of the beginning, and where it `measures` what accesses cost.
fn rehearse(
    setting: &Setting,
    test: &Arc<Test>,
    pinning: Pinning,
    measures: bool,
) -> Result<Rehearsed, LitmusError> {
    let timing = Timing {
        pinning,
        ..Timing::plain(test)
    };
    let run = Run {
        number: 0,
        round: 0,
        timing,
        handicaps: vec![Time::ZERO; test.threads.len()],
        rehearses: measures,
    };
    let (machine, _) = perform(setting, test, run)?;
    let spans = machine.spans();
    let heard = spans.called(roles::HEARD).iter();
    let heard: Vec<Time> = heard.map(|thread| thread.first_begin).collect();
    let last = heard.iter().copied().max().unwrap_or_default();
    let longest = |name| {
        let took = |span: &SpanTimes| span.last_end.since(span.first_begin);
        spans
            .called(name)
            .iter()
            .map(took)
            .max()
            .unwrap_or_default()
    };
    Ok(Rehearsed {
        handicaps: heard.iter().map(|&time| last.since(time)).collect(),
        costs: Costs {
            miss: longest(roles::MISS),
            far: longest(roles::FAR),
            hit: longest(roles::HIT),
        },
    })
}

/// A run, before it is performed.
struct Run {
    number: u32,
    /// Decides on the homes where the setting does not.
    round: u32,
    timing: Timing,
    handicaps: Vec<Time>,
    rehearses: bool,
}

/// The machine after a run, and where its threads wrote down what they saw.
fn perform(
    setting: &Setting,
    test: &Arc<Test>,
    run: Run,
) -> Result<(Box<dyn Readable>, Arc<LitmusPlan>), LitmusError> {
    let threads = test.threads.len() as u32;
    let nodes = setting.nodes_for(test);
    let starter = match setting.spread {
        Spread::OneNode => threads,
        Spread::OnePerNode => 1,
    };
    let crowd = match run.timing.crowd {
        Some(crowd) => crowd.cores.min(setting.cores().saturating_sub(starter + 1)),
        None => 0,
    };
    let pinning = run.timing.pinning;
    let plan = Arc::new(LitmusPlan {
        route: match setting.memory {
            MemoryKind::Local => Route::Nearest,
            MemoryKind::Engine => Route::Global,
            MemoryKind::Cached => Route::Cached,
        },
        homes: setting.homes_of(test, run.round),
        shared: match setting.memory {
            MemoryKind::Local => Homes::Own,
            _ => setting.machine.shape().sharing(nodes),
        },
        spread: setting.spread,
        nodes,
        starter,
        crowd,
        line_bytes: setting.machine.shape().line_bytes.into(),
        timing: run.timing,
        handicaps: run.handicaps,
        rehearses: run.rehearses,
        reached: Mutex::new(test.initial_state()),
        test: Arc::clone(test),
    });
    let setup = Setup::new(setting.machine.shape(), nodes, starter + 1 + crowd)
        .pinned(pinning)
        .seeded(setting.seed.wrapping_add(run.number.into()));
    let program = |memory, node, core| roles::perform(memory, node, core, Arc::clone(&plan));
    let mut machine = setting.machine.build(setup.clone(), program)?;
    if let Err(failure) = machine.run(1, |_| {}) {
        let again = |_: &mut dyn Peers| setting.machine.build(setup, program);
        let name = |place| plan.variable(place);
        return Err(explained(failure, again, (&mut Alone, 1), &name).into());
    }
    Ok((machine, plan))
}
