//! Ports (MPI-4.1, Sec. 11.9): a rank opens one, and groups that know its name connect to it.
//!
//! The root of a group that connects asks the rank that has the port; that rank keeps what it is
//! asked until its own group accepts, and refuses what is asked of a port that is not open. It does
//! so whenever it makes progress, whichever call it is in.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::create::{Made, announce, fresh, overlap};
use crate::collective::team::Team;
use crate::device::Device;
use crate::device::active::Handler;
use crate::error::{ErrorClass, Fault};
use crate::group::Group;

/// The context of packets about ports: no communicator has it.
const CONTEXT: u64 = u64::MAX;

/// A port: the rank of the job that has it, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) rank: u32,
    pub(crate) number: u32,
}

impl Port {
    /// The name that programs give each other.
    pub(crate) fn name(self) -> String {
        format!("rank {}, port {}", self.rank, self.number)
    }

    /// The port of that name in a job of so many ranks.
    pub(crate) fn named(name: &str, ranks: u32) -> Result<Self, Fault> {
        let read = || {
            let (rank, number) = name.strip_prefix("rank ")?.split_once(", port ")?;
            let (rank, number) = (rank.parse().ok()?, number.parse().ok()?);
            (rank < ranks).then_some(Self { rank, number })
        };
        read().ok_or_else(|| no_port(format!("'{name}' is no port's name")))
    }
}

fn no_port(text: String) -> Fault {
    Fault::new(ErrorClass::Port, "port_name", text)
}

/// The ports of a rank, and its attempts to connect.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    /// Those that are open, and who wants to connect.
    open: BTreeMap<u32, VecDeque<Caller>>,
    opened: u32,
    asked: u64,
    /// Answers to attempts, by their numbers; none where a port is not open.
    answers: BTreeMap<u64, Option<Made>>,
}

/// A group that wants to connect, of which the context is made already.
#[derive(Debug)]
struct Caller {
    root: u32,
    attempt: u64,
    group: Made,
}

const CONNECTS: u8 = 0;
const ACCEPTED: u8 = 1;
const REFUSED: u8 = 2;

/// A packet: its kind, the number of the attempt, that of the port, and a group.
fn packet(kind: u8, attempt: u64, number: u32, group: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(attempt.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend(group);
    bytes
}

impl Handler for Ports {
    fn packet(&mut self, from: u32, bytes: &[u8], device: &Device) {
        let read = || {
            let (&kind, rest) = bytes.split_first()?;
            let (attempt, rest) = rest.split_first_chunk()?;
            let (number, group) = rest.split_first_chunk()?;
            let (attempt, number) = (u64::from_le_bytes(*attempt), u32::from_le_bytes(*number));
            Some((kind, attempt, number, group))
        };
        // Ranks send nothing else there.
        let Some((kind, attempt, number, group)) = read() else {
            return;
        };
        let group = Made::from_bytes(group);
        match (kind, self.open.get_mut(&number)) {
            (CONNECTS, Some(callers)) => callers.push_back(Caller {
                root: from,
                attempt,
                group,
            }),
            (CONNECTS, None) => refuses(device, from, attempt),
            (ACCEPTED, _) => drop(self.answers.insert(attempt, Some(group))),
            _ => drop(self.answers.insert(attempt, None)),
        }
    }
}

fn refuses(device: &Device, root: u32, attempt: u64) {
    device.send_active(root, CONTEXT, packet(REFUSED, attempt, 0, &[]));
}

impl Ports {
    /// Those of the rank that has `device`.
    pub(crate) fn of(device: &Device) -> Arc<Mutex<Self>> {
        let ports = Arc::new(Mutex::new(Self::default()));
        device.set_handler(CONTEXT, ports.clone());
        ports
    }

    /// Opens one; its number.
    pub(crate) fn open(&mut self) -> u32 {
        self.opened += 1;
        self.open.insert(self.opened, VecDeque::new());
        self.opened
    }

    /// Closes a port of this rank; those that have not been accepted are refused.
    pub(crate) fn close(&mut self, port: Port, device: &Device) -> Result<(), Fault> {
        self.check(port, device)?;
        for caller in self.open.remove(&port.number).unwrap_or_default() {
            refuses(device, caller.root, caller.attempt);
        }
        Ok(())
    }

    /// Closes all.
    pub(crate) fn close_all(&mut self, device: &Device) {
        for caller in std::mem::take(&mut self.open).into_values().flatten() {
            refuses(device, caller.root, caller.attempt);
        }
    }

    /// Returns whether a port is this rank's, and open.
    fn check(&self, port: Port, device: &Device) -> Result<(), Fault> {
        let is_own = port.rank == device.rank();
        match is_own && self.open.contains_key(&port.number) {
            true => Ok(()),
            false => Err(no_port(format!(
                "'{}' is not open at this rank",
                port.name()
            ))),
        }
    }
}

/// MPI_Comm_accept: `root`, to which alone the port matters, waits for a group that connects, and
/// tells its own side.
pub(crate) async fn accept(
    local: Team,
    (root, port): (u32, Option<Result<Port, Fault>>),
    (group, ports): (Group, Arc<Mutex<Ports>>),
) -> Result<Vec<u8>, Fault> {
    let device = Arc::clone(local.device());
    let mut told = Ok(Vec::new());
    if let Some(port) = port {
        let open = port.and_then(|port| {
            ports.lock().check(port, &device)?;
            Ok(port.number)
        });
        told = match open {
            Err(fault) => Err(fault),
            Ok(number) => {
                let next = || ports.lock().open.get_mut(&number)?.pop_front();
                let caller = device.changed(next).await;
                let own = Made {
                    context: caller.group.context,
                    ranks: group.world_ranks().collect(),
                };
                let accepted = packet(ACCEPTED, caller.attempt, number, &own.to_bytes());
                device.send_active(caller.root, CONTEXT, accepted);
                Ok(caller.group.to_bytes())
            }
        };
    }
    tell(local, root, told, &group).await
}

/// MPI_Comm_connect: `root` asks the rank that has the port, and tells its own side.
pub(crate) async fn connect(
    local: Team,
    (root, port): (u32, Option<Result<Port, Fault>>),
    (group, ports): (Group, Arc<Mutex<Ports>>),
) -> Result<Vec<u8>, Fault> {
    let device = Arc::clone(local.device());
    let told = match port {
        None => Ok(Vec::new()),
        Some(Err(fault)) => Err(fault),
        Some(Ok(port)) => {
            let attempt = {
                let mut ports = ports.lock();
                ports.asked += 1;
                ports.asked
            };
            let own = Made {
                context: fresh(&device),
                ranks: group.world_ranks().collect(),
            };
            let asks = packet(CONNECTS, attempt, port.number, &own.to_bytes());
            device.send_active(port.rank, CONTEXT, asks);
            let answer = || ports.lock().answers.remove(&attempt);
            let accepted = device.changed(answer).await;
            accepted
                .map(|theirs| {
                    let context = own.context;
                    Made { context, ..theirs }.to_bytes()
                })
                .ok_or_else(|| no_port(format!("'{}' is not open", port.name())))
        }
    };
    tell(local, root, told, &group).await
}

/// `root` tells its side who the other one is, or what is wrong.
async fn tell(
    local: Team,
    root: u32,
    told: Result<Vec<u8>, Fault>,
    group: &Group,
) -> Result<Vec<u8>, Fault> {
    const FINE: u8 = 0;
    const NO_PORT: u8 = 1;
    const NOT_STARTED: u8 = 2;
    const NO_PROGRAM: u8 = 3;
    let (kind, mut rest) = match told {
        Ok(group) => (FINE, group),
        Err(fault) => {
            let kind = match (fault.class, fault.argument) {
                (ErrorClass::Spawn, "command") => NO_PROGRAM,
                (ErrorClass::Spawn, _) => NOT_STARTED,
                _ => NO_PORT,
            };
            (kind, fault.text.into_owned().into_bytes())
        }
    };
    rest.insert(0, kind);
    let bytes = announce(local, root, rest).await?;
    let (kind, rest) = bytes.split_first().unwrap_or((&NO_PORT, &[]));
    let text = || String::from_utf8_lossy(rest).into_owned();
    match *kind {
        FINE => {
            overlap(group, &Made::from_bytes(rest))?;
            Ok(rest.to_vec())
        }
        NO_PROGRAM => Err(Fault::new(ErrorClass::Spawn, "command", text())),
        NOT_STARTED => Err(Fault::new(ErrorClass::Spawn, "maxprocs", text())),
        _ => Err(no_port(text())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_were_written() {
        let port = Port { rank: 5, number: 3 };
        assert_eq!(Port::named(&port.name(), 6), Ok(port));
        for wrong in [
            "",
            "rank 5",
            "rank 6, port 1",
            "rank -1, port 1",
            "rank 1, port x",
        ] {
            let fault = Port::named(wrong, 6).unwrap_err();
            assert_eq!(fault.class, ErrorClass::Port, "{wrong}");
        }
    }
}
