//! Commands to the clock of a tile and the voltage of an island, their effect on the core, and the
//! energy that it takes.
//!
//! A command to the clock goes to the registers of the own tile, one to the voltage to those of the
//! system interface. When it acts, all cores of the tile or the island are told at once, which
//! takes no time: nothing on the chip stands for it. Power changes with clock and voltage, and with
//! whether the core is halted; the energy is added up from one change to the next.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sme_memory::{LEAST_DIVIDER, MOST_DIVIDER, Refused};

use super::access::Sends;
use super::core::{Core, Cpu, Later};
use super::islands::is_voltage;
use super::layout::Chip;
use super::spec::SccSpec;
use super::way::At;
use crate::machine::node::Waiting;
use crate::observe::energy::{Change, Energy};
use crate::parts::address::FaultReason;
use crate::time::Time;

/// The energy of a core up to the last change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    since: Time,
    /// The time until then for which it was not halted.
    busy: Time,
    divider: u32,
    millivolts: u32,
    joules: f64,
    slowed: Time,
    lowered: Time,
}

impl Meter {
    pub(super) fn new(spec: &SccSpec) -> Self {
        Self {
            since: Time::ZERO,
            busy: Time::ZERO,
            divider: spec.settings.divider,
            millivolts: spec.settings.voltage,
            joules: 0.0,
            slowed: Time::ZERO,
            lowered: Time::ZERO,
        }
    }

    /// Adds what the core has taken until `now`, when it has not been halted for `busy` in all.
    fn advance(&mut self, spec: &SccSpec, now: Time, busy: Time) {
        let (settings, power) = (&spec.settings, &spec.power);
        let seconds = |span: Time| span.as_ps() as f64 * 1e-12;
        let (span, executes) = (now.since(self.since), busy.since(self.busy));
        let halted = seconds(span.since(executes));
        let volts = f64::from(self.millivolts) / 1e3;
        let gigahertz = settings.hertz(self.divider) / 1e9;
        let switches = seconds(executes) + power.halted * halted;
        self.joules += power.core_rest(volts) * seconds(span)
            + power.core_switching(volts, gigahertz) * switches;
        if self.divider > settings.divider {
            self.slowed += span;
        }
        if self.millivolts < settings.voltage {
            self.lowered += span;
        }
        self.since = self.since.max(now);
        self.busy = self.busy.max(busy);
    }
}

impl Core {
    /// `thread` commands the clock of the own tile.
    pub(super) fn commands_clock(&mut self, cpu: &mut Cpu, thread: u16, divider: u32) {
        if !(LEAST_DIVIDER..=MOST_DIVIDER).contains(&divider) {
            return cpu.refuse(thread, None, FaultReason::NoSuchSetting);
        }
        cpu.waits(thread, Waiting::Answer);
        let own = At::registers(self.me);
        self.ask(cpu, thread, own, Sends::Divider(divider));
    }

    /// `thread` commands the voltage of the own island.
    pub(super) fn commands_voltage(&mut self, cpu: &mut Cpu, thread: u16, millivolts: u32) {
        if !is_voltage(millivolts) {
            return cpu.refuse(thread, None, FaultReason::NoSuchSetting);
        }
        cpu.waits(thread, Waiting::Answer);
        let chip = &self.space.chip;
        let regulator = At::registers(Chip::cores_of(chip.regulator())[0]);
        let island = chip.island_of(self.tile);
        self.ask(cpu, thread, regulator, Sends::Voltage(island, millivolts));
    }

    /// A command to the clock of this core's tile is here.
    pub(super) fn takes_divider(&mut self, cpu: &mut Cpu, by: (u32, u16), divider: u32) {
        let mut islands = self.islands.lock();
        let before = islands.divider(self.tile);
        let taken = islands.commands_clock(self.tile, divider);
        drop(islands);
        match taken {
            Ok(()) => {
                let at = cpu.now + self.spec.settings.retunes(before);
                cpu.later(at, Later::Retunes(by.0, by.1));
            }
            Err(_) => self.tells_result(cpu, by, taken),
        }
    }

    /// A command to the regulator is here.
    pub(super) fn takes_voltage(
        &mut self,
        cpu: &mut Cpu,
        by: (u32, u16),
        (island, millivolts): (u32, u32),
    ) {
        let taken = (self.islands.lock()).commands_voltage(cpu.now, island, millivolts);
        match taken {
            Ok(at) => cpu.later(at, Later::Regulates(by.0, by.1, island)),
            Err(refused) => self.tells_result(cpu, by, Err(refused)),
        }
    }

    /// A command of that core's thread to the clock of this core's tile acts.
    pub(super) fn retunes(&mut self, cpu: &mut Cpu, by: (u32, u16)) {
        self.islands.lock().changes_clock(self.tile);
        self.tells_of_change(cpu, self.tile);
        self.tells_result(cpu, by, Ok(()));
    }

    /// The voltage of `island` is the one that a thread has commanded.
    pub(super) fn regulates(&mut self, cpu: &mut Cpu, by: (u32, u16), island: u32) {
        self.islands.lock().changes_voltage(island);
        for tile in self.space.chip.tiles_of(island) {
            self.tells_of_change(cpu, tile);
        }
        self.tells_result(cpu, by, Ok(()));
    }

    fn tells_of_change(&self, cpu: &mut Cpu, tile: u32) {
        self.tuned.store(true, Ordering::Relaxed);
        for core in Chip::cores_of(tile) {
            cpu.send(core, cpu.now, 0, Sends::Changed);
        }
    }

    fn tells_result(&mut self, cpu: &mut Cpu, by: (u32, u16), result: Result<(), Refused>) {
        cpu.progress();
        let answer = Sends::Answer(Refused::to_answer(result));
        self.answers(cpu, by, (At::registers(self.me), 0), answer);
    }

    /// The clock of this core's tile, or the voltage of its island, is another from now on.
    pub(super) fn has_changed(&mut self, cpu: &mut Cpu) {
        let (now, busy) = (cpu.now, cpu.busy(cpu.now));
        self.meter.advance(&self.spec, now, busy);
        let islands = self.islands.lock();
        let (before, divider) = (self.meter.divider, islands.divider(self.tile));
        self.meter.divider = divider;
        self.meter.millivolts = islands.voltage(self.space.chip.island_of(self.tile));
        self.spec = Arc::clone(islands.spec(self.tile));
        drop(islands);
        self.changes.push(Change {
            at: now,
            core: self.me,
            divider,
            millivolts: self.meter.millivolts,
        });
        if divider != before {
            cpu.retunes((divider, self.spec.settings.divider));
            self.spins_anew(cpu);
        }
    }

    /// The energy until then; the first core has that of the parts that belong to no core.
    pub(super) fn taken(&self, cpu: &Cpu, until: Time) -> Energy {
        let mut meter = self.meter;
        let busy = cpu.busy(until);
        meter.advance(&self.spec, until, busy);
        let power = &self.spec.power;
        let seconds = match self.me {
            0 => until.as_ps() as f64 * 1e-12,
            _ => 0.0,
        };
        Energy {
            until,
            cores_j: vec![meter.joules],
            mesh_j: power.mesh_watts * seconds,
            memory_j: power.memory_watts * seconds,
            clock_j: power.clock_watts * seconds,
            busy,
            slowed: meter.slowed,
            lowered: meter.lowered,
            changes: self.changes.clone(),
        }
    }
}
