//! The power of the chip, from two published operating points (Howard et al., *A 48-Core IA-32
//! Message-Passing Processor with DVFS in 45nm CMOS*, ISSCC 2010, and JSSC 46(1), 2011): 125 W at
//! 1.14 V and 25 W at 0.7 V, each by component.
//!
//! Power is two parts, one that goes with the square of the voltage times the clock, and the rest.
//! The rest goes with the voltage in cores and mesh, as that of a constant current of leakage; it
//! is constant in memory with its controllers and in the global clock, which hang on supplies of
//! their own (with a current of leakage the two points would make the first part negative). Both
//! parts are solved from the two points: two equations, two unknowns.
//!
//! A machine file has the points; `tune` and `core` add up energy. Units: volts, gigahertz, watts.

use crate::machine::reader::Reader;

/// Power by voltage and clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// Watts by square volt and gigahertz.
    switching: f64,
    rest: Rest,
}

/// The part that does not depend on the clock.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rest {
    /// Amperes: it goes with the voltage.
    Leaks(f64),
    /// Watts.
    Constant(f64),
}

/// A voltage, a clock, and the power there.
#[derive(Clone, Copy, Debug)]
struct Point {
    volts: f64,
    gigahertz: f64,
    watts: f64,
}

impl Power {
    /// The power through both points; `leaks` says of which kind the rest is. None if a part of it
    /// would be negative, or the points do not tell its parts apart.
    fn through([one, other]: [Point; 2], leaks: bool) -> Option<Self> {
        let switches = |point: Point| point.volts * point.volts * point.gigahertz;
        let weight = |point: Point| if leaks { point.volts } else { 1.0 };
        let determinant = switches(one) * weight(other) - switches(other) * weight(one);
        let switching = (one.watts * weight(other) - other.watts * weight(one)) / determinant;
        let rest = (switches(one) * other.watts - switches(other) * one.watts) / determinant;
        let is_power = |part: f64| part.is_finite() && part >= 0.0;
        (is_power(switching) && is_power(rest)).then_some(Self {
            switching,
            rest: match leaks {
                true => Rest::Leaks(rest),
                false => Rest::Constant(rest),
            },
        })
    }

    /// The part that depends on the clock \[W\].
    pub fn switching(&self, volts: f64, gigahertz: f64) -> f64 {
        self.switching * volts * volts * gigahertz
    }

    /// The part that does not \[W\].
    pub fn rest(&self, volts: f64) -> f64 {
        match self.rest {
            Rest::Leaks(amperes) => amperes * volts,
            Rest::Constant(watts) => watts,
        }
    }

    /// Both \[W\].
    pub fn watts(&self, volts: f64, gigahertz: f64) -> f64 {
        self.switching(volts, gigahertz) + self.rest(volts)
    }
}

/// The power of a chip by its parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChipPower {
    /// All cores of a chip of 24 tiles.
    cores: Power,
    /// Routers and links \[W\], whose clock and voltage no program changes.
    pub mesh_watts: f64,
    /// Memory controllers and memory \[W\].
    pub memory_watts: f64,
    /// The global clock \[W\].
    pub clock_watts: f64,
    /// The part of a core's switching that is left when it is halted.
    pub halted: f64,
}

/// Cores of the chip that was measured, and its tiles.
const MEASURED_CORES: f64 = 48.0;
const MEASURED_TILES: f64 = 24.0;

impl ChipPower {
    /// A core that executes, the part that depends on the clock \[W\].
    pub fn core_switching(&self, volts: f64, gigahertz: f64) -> f64 {
        self.cores.switching(volts, gigahertz) / MEASURED_CORES
    }

    /// A core, the part that does not \[W\].
    pub fn core_rest(&self, volts: f64) -> f64 {
        self.cores.rest(volts) / MEASURED_CORES
    }
}

/// In milliwatts: the most that a part of the chip takes.
const MOST_POWER: u32 = 1_000_000;

/// In millivolts.
const VOLTAGES: std::ops::RangeInclusive<u32> = 100..=5000;

/// Reads or lists the constants, of a chip of so many tiles whose mesh runs at so many Hertz.
pub(super) fn read(read: &mut Reader<'_>, (tiles, mesh_hz): (u32, u64)) -> ChipPower {
    let mut section = read.section("power");
    let mut volts = |key, meaning| f64::from(section.voltage(key, VOLTAGES, meaning)) / 1e3;
    let fast = volts("fast_voltage", "all voltages at the faster operating point");
    let slow = volts("slow_voltage", "the same at the slower one");
    let mesh_volts = volts(
        "mesh_voltage",
        "voltage of the mesh and the global clock here",
    );
    let mut clock = |key, meaning| section.clock(key, meaning).hz() as f64 / 1e9;
    let fast_core = clock("fast_core", "clock of cores at the faster operating point");
    let slow_core = clock("slow_core", "the same at the slower one");
    let fast_mesh = clock(
        "fast_mesh",
        "clock of the mesh at the faster operating point",
    );
    let slow_mesh = clock("slow_mesh", "the same at the slower one");
    let mut watts = |key, meaning| f64::from(section.power(key, 0..=MOST_POWER, meaning)) / 1e3;
    let mut pair = |[fast_key, slow_key]: [&'static str; 2], meaning, clocks: [f64; 2]| {
        let point = |volts, gigahertz, watts| Point {
            volts,
            gigahertz,
            watts,
        };
        let fast_watts = watts(fast_key, meaning);
        let slow_watts = watts(slow_key, "the same at the slower one");
        [
            point(fast, clocks[0], fast_watts),
            point(slow, clocks[1], slow_watts),
        ]
    };
    let (by_core, by_mesh) = ([fast_core, slow_core], [fast_mesh, slow_mesh]);
    let cores = pair(
        ["fast_cores", "slow_cores"],
        "power of all cores at the faster operating point",
        by_core,
    );
    let mesh = pair(
        ["fast_routers", "slow_routers"],
        "power of routers and links at the faster operating point",
        by_mesh,
    );
    let memory = pair(
        ["fast_memory", "slow_memory"],
        "power of memory and its controllers at the faster operating point",
        by_mesh,
    );
    let global = pair(
        ["fast_global", "slow_global"],
        "power of the global clock at the faster operating point",
        by_mesh,
    );
    let halted = f64::from(section.count(
        "halted",
        0..=100,
        "of what a core takes that depends on its clock, what is left while it is halted, in percent",
    )) / 100.0;
    let mut through = |names: &[&str], points, leaks| {
        let power = Power::through(points, leaks);
        read.rule(names, power.is_some(), || {
            "the two operating points make a part of the power negative".to_owned()
        });
        power.unwrap_or(Power {
            switching: 0.0,
            rest: Rest::Constant(0.0),
        })
    };
    let mesh_ghz = mesh_hz as f64 / 1e9;
    let cores = through(&["power.fast_cores", "power.slow_cores"], cores, true);
    let mesh = through(&["power.fast_routers", "power.slow_routers"], mesh, true);
    let memory = through(&["power.fast_memory", "power.slow_memory"], memory, false);
    let global = through(&["power.fast_global", "power.slow_global"], global, false);
    let of_tiles = f64::from(tiles) / MEASURED_TILES;
    ChipPower {
        cores,
        mesh_watts: mesh.watts(mesh_volts, mesh_ghz) * of_tiles,
        memory_watts: memory.watts(mesh_volts, mesh_ghz),
        clock_watts: global.watts(mesh_volts, mesh_ghz) * of_tiles,
        halted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point(volts: f64, gigahertz: f64, watts: f64) -> Point {
        Point {
            volts,
            gigahertz,
            watts,
        }
    }

    /// The published parts at both points, and a current of leakage where it cannot be.
    #[test]
    fn the_published_points_come_out() {
        let parts = [
            ([1.0, 0.125], [87.7, 5.1], true),
            ([2.0, 0.25], [12.1, 1.2], true),
            ([2.0, 0.25], [23.6, 17.2], false),
            ([2.0, 0.25], [1.9, 1.2], false),
        ];
        for (clocks, watts, leaks) in parts {
            let [one, other] = [0, 1].map(|at| point([1.14, 0.7][at], clocks[at], watts[at]));
            let power = Power::through([one, other], leaks).unwrap();
            for point in [one, other] {
                let found = power.watts(point.volts, point.gigahertz);
                assert!((found - point.watts).abs() < 1e-9, "{found} {point:?}");
            }
        }
        let global = [point(1.14, 2.0, 1.9), point(0.7, 0.25, 1.2)];
        assert_eq!(Power::through(global, true), None);
        assert_eq!(Power::through([global[0]; 2], false), None);
    }

    proptest! {
        /// Against powers whose parts are known.
        #[test]
        fn parts_are_found_from_two_points(
            switching in 0.0..100.0_f64,
            amperes in 0.0..10.0_f64,
            volts in (0.6..0.9_f64, 1.0..1.3_f64),
            clocks in (0.1..0.5_f64, 0.6..2.0_f64),
            leaks: bool,
        ) {
            let rest = |volts: f64| if leaks { amperes * volts } else { amperes };
            let watts = |volts: f64, clock: f64| switching * volts.powi(2) * clock + rest(volts);
            let points = [(volts.1, clocks.1), (volts.0, clocks.0)];
            let points = points.map(|(volts, clock)| point(volts, clock, watts(volts, clock)));
            // Rounding may make a part that is nothing negative.
            if let Some(power) = Power::through(points, leaks) {
                let (volts, clock) = (1.05, 0.7);
                prop_assert!((power.watts(volts, clock) - watts(volts, clock)).abs() < 1e-6);
            } else {
                prop_assert!(switching < 1e-6 || amperes < 1e-6);
            }
        }
    }
}
