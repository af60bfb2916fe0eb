//! Clocks of tiles and voltages of islands, as the whole chip has them, and its voltage regulator.
//! Each island is 2 x 2 tiles with one voltage; each tile divides the global clock by a divider of
//! its own (Intel's RCCE, `RCCE_power_management.c`, whose table says which clock each voltage
//! allows at most).
//!
//! All cores of the chip share this state ([`Islands`]); each has its constants at the clock of its
//! tile.

use std::collections::VecDeque;
use std::sync::Arc;

use sme_memory::{LEAST_DIVIDER, MOST_DIVIDER, Refused};

use super::layout::Chip;
use super::spec::SccSpec;
use crate::machine::reader::Reader;
use crate::time::{Clock, Time};

/// The voltages of RCCE's table \[mV\].
const LEVELS: [u32; 7] = [700, 800, 900, 1000, 1100, 1200, 1300];

/// Columns and rows of an island's tiles.
const SIDE: u32 = 2;

/// The column of the tile at whose router the system interface is, and with it the regulator; it is
/// in the first row.
const REGULATOR_COLUMN: u32 = 3;

/// The constants of clocks and voltages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The clock of cores at the base divider.
    core: Clock,
    /// The divider with which all tiles begin.
    pub divider: u32,
    /// The voltage with which all islands begin \[mV\].
    pub voltage: u32,
    /// From a command to a tile's clock until it acts, at the base clock.
    retune: Time,
    /// From a command to the regulator until the voltage is there.
    pub regulate: Time,
    /// The fastest clock that each of [`LEVELS`] allows \[Hz\].
    fastest: [u64; LEVELS.len()],
}

/// Picoseconds: the longest change of a voltage.
const REGULATION: u64 = 1_000_000_000_000;

/// Reads or lists the constants, of a chip whose cores have that clock to begin with.
pub(super) fn read(read: &mut Reader<'_>, core: Clock) -> Settings {
    let mut section = read.section("island");
    let divider = section.count(
        "divider",
        LEAST_DIVIDER..=MOST_DIVIDER,
        "divider of the global clock that makes core.clock",
    );
    let voltage = section.voltage(
        "voltage",
        LEVELS[0]..=LEVELS[6],
        "voltage of all cores to begin with",
    );
    let retune = core.span(section.cycles(
        "retune",
        0..=1_000_000,
        "from a command to a tile's clock until it acts",
    ));
    let regulate = section.time(
        "regulate",
        0..=REGULATION,
        "from a command to the voltage regulator until the voltage is there",
    );
    let mut fastest = |key, meaning| section.clock(key, meaning).hz();
    let fastest = [
        fastest("at_700_mv", "the fastest clock of a core at 0.7 V"),
        fastest("at_800_mv", "the same at 0.8 V"),
        fastest("at_900_mv", "the same at 0.9 V"),
        fastest("at_1000_mv", "the same at 1.0 V"),
        fastest("at_1100_mv", "the same at 1.1 V"),
        fastest("at_1200_mv", "the same at 1.2 V"),
        fastest("at_1300_mv", "the same at 1.3 V"),
    ];
    Settings {
        core,
        divider,
        voltage,
        retune,
        regulate,
        fastest,
    }
}

impl Settings {
    /// The clock of a core with that divider \[Hz\].
    pub fn hertz(&self, divider: u32) -> f64 {
        self.core.hz() as f64 * f64::from(self.divider) / f64::from(divider)
    }

    /// Returns whether cores run with that divider at that voltage: as the table says, and as they
    /// begin.
    fn allows(&self, millivolts: u32, divider: u32) -> bool {
        if millivolts >= self.voltage && divider >= self.divider {
            return true;
        }
        let mut levels = LEVELS.iter().zip(self.fastest).rev();
        let fastest = levels.find(|&(&level, _)| level <= millivolts);
        fastest.is_some_and(|(_, hertz)| self.hertz(divider) <= hertz as f64)
    }

    /// The lowest voltage of the table at which cores run with that divider \[mV\], at most the
    /// highest.
    pub fn least_voltage(&self, divider: u32) -> u32 {
        let mut levels = LEVELS.iter().copied();
        let level = levels.find(|&level| self.allows(level, divider));
        let level = level.unwrap_or(LEVELS[6]);
        match divider >= self.divider {
            true => level.min(self.voltage),
            false => level,
        }
    }

    /// From a command to a tile with that divider until another one acts.
    pub fn retunes(&self, divider: u32) -> Time {
        self.retune.scaled(divider, self.divider)
    }
}

/// A tile's divider, or an island's voltage \[mV\].
#[derive(Clone, Debug)]
struct Setting {
    is: u32,
    /// Those that it is about to be, one after the other.
    next: VecDeque<u32>,
}

impl Setting {
    fn new(is: u32) -> Self {
        let next = VecDeque::new();
        Self { is, next }
    }

    /// The least that it is until all commands have acted.
    fn least(&self) -> u32 {
        self.next
            .iter()
            .fold(self.is, |least, &next| least.min(next))
    }

    /// The first command acts.
    fn changes(&mut self) {
        self.is = self.next.pop_front().unwrap_or(self.is);
    }
}

/// The state of all tiles and islands.
#[derive(Debug)]
pub struct Islands {
    chip: Chip,
    settings: Settings,
    /// Dividers.
    tiles: Vec<Setting>,
    voltages: Vec<Setting>,
    /// Until when the regulator is busy.
    regulator: Time,
    /// The constants of a core by its divider.
    specs: Vec<Arc<SccSpec>>,
}

impl Islands {
    /// Makes the islands in their initial state.
    pub fn new(spec: &Arc<SccSpec>) -> Self {
        let (chip, settings) = (spec.chip, spec.settings);
        let of = |divider| match divider == settings.divider {
            true => Arc::clone(spec),
            false => Arc::new(spec.at_divider(divider)),
        };
        Self {
            chip,
            settings,
            tiles: vec![Setting::new(settings.divider); chip.tiles() as usize],
            voltages: vec![Setting::new(settings.voltage); chip.islands() as usize],
            regulator: Time::ZERO,
            specs: (LEAST_DIVIDER..=MOST_DIVIDER).map(of).collect(),
        }
    }

    /// The divider of `tile`.
    pub fn divider(&self, tile: u32) -> u32 {
        self.tiles[tile as usize].is
    }

    /// The constants of a core of `tile`.
    pub fn spec(&self, tile: u32) -> &Arc<SccSpec> {
        &self.specs[(self.divider(tile) - LEAST_DIVIDER) as usize]
    }

    /// The voltage of `island` \[mV\].
    pub fn voltage(&self, island: u32) -> u32 {
        self.voltages[island as usize].is
    }

    /// A command to the clock of `tile`; from then on it is about to change.
    ///
    /// # Errors
    /// [`Refused`] if its voltage, now or soon, does not allow that.
    pub fn commands_clock(&mut self, tile: u32, divider: u32) -> Result<(), Refused> {
        let voltage = self.voltages[self.chip.island_of(tile) as usize].least();
        self.allows(tile, voltage, divider)?;
        self.tiles[tile as usize].next.push_back(divider);
        Ok(())
    }

    /// The clock of `tile` changes.
    pub fn changes_clock(&mut self, tile: u32) {
        self.tiles[tile as usize].changes();
    }

    /// A command to the regulator comes at `now`, for `island`; the time at which the voltage is
    /// there.
    ///
    /// # Errors
    /// [`Refused`] if the clock of a tile, now or soon, is too fast for it.
    pub fn commands_voltage(
        &mut self,
        now: Time,
        island: u32,
        millivolts: u32,
    ) -> Result<Time, Refused> {
        for tile in self.chip.tiles_of(island) {
            self.allows(tile, millivolts, self.tiles[tile as usize].least())?;
        }
        self.voltages[island as usize].next.push_back(millivolts);
        self.regulator = self.regulator.max(now) + self.settings.regulate;
        Ok(self.regulator)
    }

    /// The voltage of `island` has changed.
    pub fn changes_voltage(&mut self, island: u32) {
        self.voltages[island as usize].changes();
    }

    fn allows(&self, tile: u32, millivolts: u32, divider: u32) -> Result<(), Refused> {
        match self.settings.allows(millivolts, divider) {
            true => Ok(()),
            false => Err(Refused {
                tile,
                kilohertz: (self.settings.hertz(divider) / 1e3) as u32,
                millivolts,
            }),
        }
    }
}

/// Returns whether a regulator takes that voltage \[mV\].
pub fn is_voltage(millivolts: u32) -> bool {
    (LEVELS[0]..=LEVELS[6]).contains(&millivolts)
}

impl Chip {
    /// Islands of 2 x 2 tiles.
    pub fn islands(&self) -> u32 {
        self.columns() / SIDE * (self.rows() / SIDE)
    }

    /// The island of `tile`.
    pub fn island_of(&self, tile: u32) -> u32 {
        let (x, y) = self.position(tile);
        y / SIDE * (self.columns() / SIDE) + x / SIDE
    }

    /// The tiles of `island`, in the order of their numbers.
    pub fn tiles_of(&self, island: u32) -> impl Iterator<Item = u32> + use<> {
        let chip = *self;
        (0..chip.tiles()).filter(move |&tile| chip.island_of(tile) == island)
    }

    /// The tile with the system interface, where the regulator is.
    pub fn regulator(&self) -> u32 {
        let column = REGULATOR_COLUMN.min(self.columns() - 1);
        self.tile_at((column, 0)).unwrap_or_default()
    }
}
