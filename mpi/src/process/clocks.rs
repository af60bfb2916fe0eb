//! Clocks of tiles and voltages of islands as resources that a program invades with their cores: a
//! tile's clock is commanded by the program that holds both of its cores, an island's voltage by
//! the one that holds all eight.
//!
//! Each daemon keeps what the holder of its core wants. A tile has another divider than at the
//! begin only while all its cores want one for the same program, and an island another voltage:
//! that on which all agree, or as long as they do not, the one before. When a core is given back,
//! or its program takes its wish back, tile and island return to what they had at the begin, the
//! voltage first, before any daemon announces that the core is free.
//!
//! Daemons of an island look at each other's wishes and change clocks one at a time, under a lock
//! of one flag each: Lamport's one-bit algorithm (*The Mutual Exclusion Problem, Part II*, J. ACM
//! 33(2), 1986), which also the machines have whose memory can do no more than read and write.

use std::sync::Arc;

use sme_memory::{Domains, LEAST_DIVIDER, MOST_DIVIDER, Memory, Scaling, Until};

use super::alert::Means;
use super::board::{Beside, Board};
use super::command::{Command, Held, Program};
use super::sigmod::Sigmod;
use crate::processor::Processor;

/// The reason for which a clock or a voltage was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSet {
    /// The program does not hold all cores.
    #[error("core {core} of it is {}", match .holder {
        Some(holder) => format!("program {holder}'s"),
        None => "free".to_owned(),
    })]
    NotHeld {
        /// A core of the tile, or the island.
        core: u32,
        /// The program that holds it.
        holder: Option<Program>,
    },
    /// There is no such tile, island, divider or voltage: a divider is allowed that the voltage of
    /// the begin allows, and a voltage of whole tenths of a volt up to that one.
    #[error("there is no such tile or island, or it has no such setting")]
    NoSuch,
    /// The clock would be too fast for the voltage. It is now that of the begin.
    #[error("a tile of island {island} would run too fast with its voltage")]
    TooFast {
        /// The island.
        island: u32,
    },
}

impl<M, P> Sigmod<M, P>
where
    M: Means,
    P: Processor,
{
    /// Lets `tile` have that divider for `program`, or the one of the begin, with which the wishes
    /// of its cores for the island's voltage are taken back as well. Ends when it has.
    ///
    /// # Errors
    /// [`NotSet`], also if the program has lost a core meanwhile. All wishes of the tile's cores
    /// are taken back then, so that its clock is that of the begin.
    pub async fn set_frequency(
        &self,
        program: Program,
        domains: &Domains,
        (tile, divider): (u32, Option<u32>),
    ) -> Result<(), NotSet> {
        let cores = cores_in(&domains.tiles, tile);
        let setting = divider.map_or(Some(0), |divider| divider_of(domains, divider));
        let Some(setting) = setting.filter(|_| !cores.is_empty()) else {
            return Err(NotSet::NoSuch);
        };
        let wishes = self.wishes(program, &cores, (Command::Tune, setting));
        let results = wishes.await;
        self.agreed(program, domains, (&cores, results)).await
    }

    /// Lets `island` have that voltage for `program`, or the one of the begin, with which the
    /// wishes of its cores for the clocks of their tiles are taken back as well. Ends when it has.
    ///
    /// # Errors
    /// [`NotSet`], also if the program has lost a core meanwhile. All wishes of the island's cores
    /// that it holds are taken back then, those for clocks, too.
    pub async fn set_voltage(
        &self,
        program: Program,
        domains: &Domains,
        (island, millivolts): (u32, Option<u32>),
    ) -> Result<(), NotSet> {
        let cores = cores_in(&domains.islands, island);
        let tenths = millivolts.map_or(Some(0), |millivolts| tenths_of(domains, millivolts));
        let Some(tenths) = tenths.filter(|_| !cores.is_empty()) else {
            return Err(NotSet::NoSuch);
        };
        let wishes = self.wishes(program, &cores, (Command::Supply, tenths));
        let results = wishes.await;
        self.agreed(program, domains, (&cores, results)).await
    }

    /// Tells the daemons of `cores` what `program` wants of each: with [`Command::Tune`] a divider,
    /// with [`Command::Supply`] tenths of a volt, 0 for what was at the begin. The results, in
    /// their order.
    pub async fn wishes(
        &self,
        program: Program,
        cores: &[u32],
        (command, setting): (Command, u8),
    ) -> Vec<Held> {
        self.board.takes_turn(&self.memory).await;
        let results = self
            .wishes_in_turn(program, cores, (command, setting))
            .await;
        self.board.ends_turn(&self.memory).await;
        results
    }

    /// The same of a program that has its turn.
    pub(super) async fn wishes_in_turn(
        &self,
        program: Program,
        cores: &[u32],
        (command, setting): (Command, u8),
    ) -> Vec<Held> {
        let me = self.memory.node();
        for &core in cores {
            let beside = |what| self.board.beside(&self.memory, core, me, what);
            self.memory.set(beside(Beside::Program), program + 1).await;
            self.memory.set(beside(Beside::Setting), setting).await;
            self.requests(core, command).await;
        }
        self.results(cores).await
    }

    /// The outcome of wishes of `cores`; if one is not the program's, those of the others are taken
    /// back.
    async fn agreed(
        &self,
        program: Program,
        domains: &Domains,
        (cores, results): (&[u32], Vec<Held>),
    ) -> Result<(), NotSet> {
        let is_own = |held: &Held| *held == Held(Some(program));
        let Some(at) = results.iter().position(|held| !is_own(held)) else {
            return Ok(());
        };
        let own = cores.iter().zip(&results).filter(|(_, held)| is_own(held));
        let own: Vec<u32> = own.map(|(&core, _)| core).collect();
        self.wishes(program, &own, (Command::Tune, 0)).await;
        Err(match results[at] {
            Held::REFUSED => NotSet::TooFast {
                island: domains.islands[cores[at] as usize],
            },
            Held(holder) => NotSet::NotHeld {
                core: cores[at],
                holder,
            },
        })
    }
}

/// The cores that are in `domain`.
fn cores_in(domains: &[u32], domain: u32) -> Vec<u32> {
    let cores = (0..).zip(domains);
    let cores = cores.filter(|&(_, &of)| of == domain);
    cores.map(|(core, _)| core).collect()
}

/// Returns the divider, if it is allowed.
fn divider_of(domains: &Domains, divider: u32) -> Option<u8> {
    let is_allowed = (LEAST_DIVIDER..=MOST_DIVIDER).contains(&divider)
        && domains.voltage_of(divider) <= domains.millivolts;
    is_allowed.then_some(divider as u8)
}

/// Returns the voltage in tenths of a volt, if it is allowed.
fn tenths_of(domains: &Domains, millivolts: u32) -> Option<u8> {
    let least = domains.least_millivolts.iter().min()?;
    let is_allowed = (*least..=domains.millivolts).contains(&millivolts);
    (is_allowed && millivolts.is_multiple_of(100)).then_some((millivolts / 100) as u8)
}

/// The part of a daemon that commands the clock of its tile and the voltage of its island.
#[derive(Clone, Debug)]
pub(super) struct Warden {
    domains: Arc<Domains>,
    /// The cores of the own tile.
    tile: Vec<u32>,
    /// Those of the own island.
    island: Vec<u32>,
    /// The own core wants something.
    wants: bool,
}

impl Warden {
    /// Makes the warden of `core`.
    pub(super) fn new(domains: Arc<Domains>, core: u32) -> Self {
        let of = |domains: &[u32]| {
            let domain = domains.get(core as usize);
            domain.map_or_else(Vec::new, |&domain| cores_in(domains, domain))
        };
        Self {
            tile: of(&domains.tiles),
            island: of(&domains.islands),
            domains,
            wants: false,
        }
    }

    /// Carries a wish of `sender` out, for the core that `holder` holds.
    pub(super) async fn takes<M: Memory + Scaling>(
        &mut self,
        memory: &M,
        board: &Board,
        (sender, command): (u32, Command),
        holder: Option<Program>,
    ) -> Held {
        let me = memory.node();
        let beside = |other, what| board.beside(memory, me, other, what);
        let program = memory.read(beside(sender, Beside::Program)).await;
        let setting = memory.read(beside(sender, Beside::Setting)).await;
        if self.island.is_empty() || holder.map(|holder| holder + 1) != Some(program) {
            return Held(holder);
        }
        if setting == 0 && !self.wants {
            return Held(holder);
        }
        self.wants = true;
        self.lock(memory, board).await;
        memory.set(beside(me, Beside::Wants), program).await;
        let (wish, both) = match command {
            Command::Supply => (Beside::Tenths, false),
            _ => (Beside::Divider, setting == 0),
        };
        memory.set(beside(me, wish), setting).await;
        if both {
            memory.set(beside(me, Beside::Tenths), 0).await;
        }
        let is_set = self.settles(memory, board).await;
        if !is_set {
            self.forgets(memory, board).await;
            self.settles(memory, board).await;
        }
        self.unlock(memory, board).await;
        match is_set {
            true => Held(holder),
            false => Held::REFUSED,
        }
    }

    /// The core is about to be free: its tile and island return to what they had at the begin.
    pub(super) async fn withdraws<M: Memory + Scaling>(&mut self, memory: &M, board: &Board) {
        if std::mem::take(&mut self.wants) {
            self.lock(memory, board).await;
            self.forgets(memory, board).await;
            // The voltage rises first, and what the machine had at the begin it allows.
            self.settles(memory, board).await;
            self.unlock(memory, board).await;
        }
    }

    async fn forgets<M: Memory>(&self, memory: &M, board: &Board) {
        let me = memory.node();
        for what in [Beside::Wants, Beside::Divider, Beside::Tenths] {
            memory.set(board.beside(memory, me, me, what), 0).await;
        }
    }

    /// Sets the clock of the tile and the voltage of the island to what their cores want; whether
    /// these allow each other.
    async fn settles<M: Memory + Scaling>(&self, memory: &M, board: &Board) -> bool {
        let state = board.voltage(memory, self.island[0]);
        let before = memory.read(state).await;
        let tenths = wanted(memory, board, (&self.island, Beside::Tenths), before).await;
        let first = self.tile[0];
        let own = board.beside(memory, first, first, Beside::IsDivider);
        let divided = memory.read(own).await;
        let divider = wanted(memory, board, (&self.tile, Beside::Divider), divided).await;
        let volts = |tenths: u8| match tenths {
            0 => self.domains.millivolts,
            tenths => 100 * u32::from(tenths),
        };
        let rises = volts(tenths) > volts(before);
        if rises && memory.set_voltage(volts(tenths)).await.is_err() {
            return false;
        }
        if rises {
            memory.set(state, tenths).await;
        }
        if divider != divided {
            let divider_of = match divider {
                0 => self.domains.divider,
                divider => divider.into(),
            };
            if memory.set_divider(divider_of).await.is_err() {
                return false;
            }
            memory.set(own, divider).await;
        }
        if volts(tenths) < volts(before) {
            if memory.set_voltage(volts(tenths)).await.is_err() {
                return false;
            }
            memory.set(state, tenths).await;
        }
        true
    }

    /// Begins to change clocks of the island, alone of its daemons.
    async fn lock<M: Memory>(&self, memory: &M, board: &Board) {
        let me = memory.node();
        let lock = |of| board.beside(memory, of, of, Beside::Lock);
        let others = || self.island.iter().copied();
        loop {
            memory.set(lock(me), 0).await;
            for other in others().filter(|&other| other < me) {
                memory.wait(lock(other), Until::Is(0)).await;
            }
            memory.set(lock(me), 1).await;
            memory.fence().await;
            let mut is_first = true;
            for other in others().filter(|&other| other < me) {
                is_first &= memory.read(lock(other)).await == 0;
            }
            if is_first {
                break;
            }
        }
        for other in others().filter(|&other| other > me) {
            memory.wait(lock(other), Until::Is(0)).await;
        }
    }

    async fn unlock<M: Memory>(&self, memory: &M, board: &Board) {
        let me = memory.node();
        memory.fence().await;
        let lock = board.beside(memory, me, me, Beside::Lock);
        memory.set(lock, 0).await;
    }
}

/// The setting on which `cores` agree; if they all want one for the same program but not the same,
/// `before`; 0 if they do not.
async fn wanted<M: Memory>(
    memory: &M,
    board: &Board,
    (cores, what): (&[u32], Beside),
    before: u8,
) -> u8 {
    let mut all: Option<(u8, u8)> = None;
    let mut agree = true;
    for &core in cores {
        let beside = |what| board.beside(memory, core, core, what);
        let program = memory.read(beside(Beside::Wants)).await;
        let setting = memory.read(beside(what)).await;
        if program == 0 || setting == 0 {
            return 0;
        }
        let (of, wants) = *all.get_or_insert((program, setting));
        if of != program {
            return 0;
        }
        agree &= wants == setting;
    }
    match all {
        Some((_, setting)) if agree => setting,
        _ => before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_that_the_begin_allows() {
        let domains = Domains {
            tiles: vec![0, 0, 1, 1],
            islands: vec![0; 4],
            divider: 3,
            millivolts: 1100,
            // With divider 2 more than at the begin.
            least_millivolts: [1200, 1000, 800].into_iter().chain([700; 12]).collect(),
        };
        let dividers = [0, 1, 2, 3, 16, 17].map(|divider| divider_of(&domains, divider));
        assert_eq!(dividers, [None, None, None, Some(3), Some(16), None]);
        let voltages = [600, 700, 750, 1100, 1200];
        let voltages = voltages.map(|millivolts| tenths_of(&domains, millivolts));
        assert_eq!(voltages, [None, Some(7), None, Some(11), None]);
        assert_eq!(cores_in(&domains.tiles, 1), [2, 3]);
        assert_eq!(cores_in(&domains.tiles, 2), []);
    }

    #[test]
    fn errors_say_why() {
        let not_held = |holder| NotSet::NotHeld { core: 5, holder };
        for (error, text) in [
            (not_held(Some(3)), "core 5 of it is program 3's"),
            (not_held(None), "core 5 of it is free"),
            (
                NotSet::TooFast { island: 2 },
                "a tile of island 2 would run too fast with its voltage",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
