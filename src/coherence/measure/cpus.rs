//! The CPUs of this computer: which the process may use, where they are, and threads pinned to
//! them.
//!
//! A *CPU* is what Linux calls one: a hardware thread. Sockets and cores are those that sysfs tells
//! (`/sys/devices/system/cpu/cpuN/topology`); in a container it may not. On other systems than
//! Linux no thread can be pinned, and no CPU is told of.

use std::fs;
use std::path::Path;

use super::MeasureError;
use crate::coherence::transition::CoreDistance;

/// Where Linux tells of its CPUs.
const SYSFS: &str = "/sys/devices/system/cpu";
/// The most CPUs of one measurement.
pub const MOST: usize = 8;
/// Other CPUs on a socket that a measurement can use: one prepares, and another shares.
const HOLDERS: usize = 2;

/// A CPU, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number in Linux.
    pub id: usize,
    /// Its socket and the core in it, where the system tells.
    pub place: Option<SocketCore>,
}

/// A core of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketCore {
    /// The socket: `physical_package_id`.
    pub socket: i64,
    /// The core in it: `core_id`.
    pub core: i64,
}

impl Cpu {
    fn of(id: usize, sysfs: &Path) -> Self {
        let number = |file: &str| -> Option<i64> {
            let path = sysfs.join(format!("cpu{id}/topology/{file}"));
            // Where there are no sockets to tell of, Linux says -1.
            let read = fs::read_to_string(path).ok()?.trim().parse().ok()?;
            (read >= 0).then_some(read)
        };
        let place = || {
            Some(SocketCore {
                socket: number("physical_package_id")?,
                core: number("core_id")?,
            })
        };
        Self { id, place: place() }
    }

    /// Where the other CPU is; on the same socket if the system does not tell.
    pub fn placement_of(self, other: Self) -> CoreDistance {
        match (self.place, other.place) {
            (Some(here), Some(there)) if here.socket != there.socket => CoreDistance::Remote,
            _ => CoreDistance::Socket,
        }
    }

    /// Returns whether the two are known to be hardware threads of one core, which share its
    /// caches.
    pub fn shares_core_with(self, other: Self) -> bool {
        self.place.is_some() && self.place == other.place
    }
}

/// The CPUs of a measurement: the first measures, the others hold lines. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// The one that loads and stores while the clock runs.
    pub measuring: Cpu,
    /// The others.
    pub holders: Vec<Cpu>,
}

impl Cpus {
    /// The first CPU that the process may use, and up to two on other cores of its socket and of
    /// other sockets.
    ///
    /// # Errors
    /// The system does not say which it may use, or gives no way to pin threads.
    pub fn default_of_process() -> Result<Self, MeasureError> {
        let allowed = allowed()?;
        let cpus = allowed.iter().map(|&id| Cpu::of(id, Path::new(SYSFS)));
        Self::chosen(&cpus.collect::<Vec<_>>()).ok_or(MeasureError::NoCpu)
    }

    /// Those with these numbers, the measuring one first.
    ///
    /// # Errors
    /// As [`Self::default_of_process`]; none or more than [`MOST`], one twice, one that the process
    /// may not use.
    pub fn named(ids: &[usize]) -> Result<Self, MeasureError> {
        let allowed = allowed()?;
        for (at, &id) in ids.iter().enumerate() {
            if ids[..at].contains(&id) {
                return Err(MeasureError::TwiceCpu(id));
            }
            if !allowed.contains(&id) {
                return Err(MeasureError::ForbiddenCpu { id, allowed });
            }
        }
        if ids.len() > MOST {
            return Err(MeasureError::ManyCpus(ids.len()));
        }
        let mut cpus = ids.iter().map(|&id| Cpu::of(id, Path::new(SYSFS)));
        Ok(Self {
            measuring: cpus.next().ok_or(MeasureError::NoCpu)?,
            holders: cpus.collect(),
        })
    }

    /// Chooses among `cpus`. Hardware threads of the measuring core come only where nothing else is
    /// on its socket.
    fn chosen(cpus: &[Cpu]) -> Option<Self> {
        let (&measuring, others) = cpus.split_first()?;
        let mut holders: Vec<Cpu> = Vec::new();
        for &placement in CoreDistance::ALL {
            let there = others
                .iter()
                .filter(|&&cpu| measuring.placement_of(cpu) == placement);
            let (siblings, apart): (Vec<Cpu>, Vec<Cpu>) =
                there.partition(|cpu| cpu.shares_core_with(measuring));
            let mut taken: Vec<Cpu> = Vec::new();
            for cpu in apart {
                let is_new = !taken.iter().any(|&other| cpu.shares_core_with(other));
                if is_new && taken.len() < HOLDERS {
                    taken.push(cpu);
                }
            }
            if taken.is_empty() {
                taken.extend(siblings.first());
            }
            holders.extend(taken);
        }
        Some(Self { measuring, holders })
    }

    /// The holders at `placement`, by their positions among all.
    pub fn holders_at(&self, placement: CoreDistance) -> Vec<usize> {
        let there = |&at: &usize| self.measuring.placement_of(self.holders[at]) == placement;
        (0..self.holders.len()).filter(there).collect()
    }
}

/// The CPUs that the process may use, in order.
#[cfg(target_os = "linux")]
fn allowed() -> Result<Vec<usize>, MeasureError> {
    use rustix::thread::{CpuSet, sched_getaffinity};

    let set = sched_getaffinity(None).map_err(|error| MeasureError::Affinity(error.into()))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Result<Vec<usize>, MeasureError> {
    Err(MeasureError::NoPinning)
}

/// Lets the calling thread run on `cpu` only.
#[cfg(target_os = "linux")]
pub fn pin(cpu: Cpu) -> Result<(), MeasureError> {
    use rustix::thread::{CpuSet, sched_setaffinity};

    let mut set = CpuSet::new();
    set.set(cpu.id);
    sched_setaffinity(None, &set).map_err(|error| MeasureError::Pin {
        id: cpu.id,
        reason: error.into(),
    })
}

/// Fails.
#[cfg(not(target_os = "linux"))]
pub fn pin(_: Cpu) -> Result<(), MeasureError> {
    Err(MeasureError::NoPinning)
}

/// The CPU on which the calling thread runs.
#[cfg(target_os = "linux")]
pub fn current() -> usize {
    rustix::thread::sched_getcpu()
}

/// None that there is.
#[cfg(not(target_os = "linux"))]
pub fn current() -> usize {
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(id: usize, socket: i64, core: i64) -> Cpu {
        let place = Some(SocketCore { socket, core });
        Cpu { id, place }
    }

    fn holders(cpus: &[Cpu]) -> Vec<usize> {
        let chosen = Cpus::chosen(cpus).unwrap();
        assert_eq!(chosen.measuring, cpus[0]);
        chosen.holders.iter().map(|cpu| cpu.id).collect()
    }

    #[test]
    fn other_cores_come_before_hardware_threads_of_the_same() {
        // Two sockets of three cores with two threads each, numbered as Linux does on Intel's.
        let cpus: Vec<Cpu> = (0..12)
            .map(|id| cpu(id, (id as i64 / 3) % 2, id as i64 % 3))
            .collect();
        assert_eq!(holders(&cpus), [1, 2, 3, 4]);
        assert_eq!(
            holders(&[cpus[0], cpus[6]]),
            [6],
            "a thread of the same core"
        );
        assert_eq!(holders(&[cpus[0], cpus[6], cpus[1], cpus[7]]), [1]);
        assert_eq!(holders(&cpus[..1]), [0; 0]);
        assert_eq!(Cpus::chosen(&[]), None);
        let all = Cpus::chosen(&cpus).unwrap();
        assert_eq!(all.holders_at(CoreDistance::Socket), [0, 1]);
        assert_eq!(all.holders_at(CoreDistance::Remote), [2, 3]);
    }

    #[test]
    fn cpus_whose_place_is_not_told_are_taken_in_order() {
        let cpus: Vec<Cpu> = (3..8).map(|id| Cpu { id, place: None }).collect();
        assert_eq!(holders(&cpus), [4, 5]);
    }

    #[test]
    fn sysfs_says_where_a_cpu_is() {
        let directory = tempfile::tempdir().unwrap();
        let write = |id: usize, socket: &str, core: &str| {
            let folder = directory.path().join(format!("cpu{id}/topology"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("physical_package_id"), socket).unwrap();
            fs::write(folder.join("core_id"), core).unwrap();
        };
        write(0, "1\n", "7\n");
        write(1, "-1\n", "0\n");
        write(2, "x", "0");
        assert_eq!(Cpu::of(0, directory.path()), cpu(0, 1, 7));
        for id in 1..4 {
            assert_eq!(Cpu::of(id, directory.path()), Cpu { id, place: None });
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_pinned_thread_runs_where_it_is_pinned() {
        let cpus = Cpus::default_of_process().unwrap();
        let all = [&[cpus.measuring], cpus.holders.as_slice()].concat();
        for cpu in all {
            let pinned = std::thread::spawn(move || pin(cpu).map(|()| current()));
            assert_eq!(pinned.join().unwrap().unwrap(), cpu.id);
        }
        assert!(matches!(Cpus::named(&[]), Err(MeasureError::NoCpu)));
        let first = cpus.measuring.id;
        let twice = Cpus::named(&[first, first]);
        assert!(matches!(twice, Err(MeasureError::TwiceCpu(_))));
        let absent = Cpus::named(&[1 << 20]);
        assert!(matches!(absent, Err(MeasureError::ForbiddenCpu { .. })));
    }
}
