//! Ranks on this computer, without a machine: channels of queues, and a scheduler of one thread
//! that runs the ranks' programs in an order drawn from a seed. The crate's tests run on it.
//!
//! Each stream has little room; pieces of any length pass; each question of a rank lets others go
//! first. The clock counts questions. When every rank that has not ended waits for what cannot
//! come, the run ends. With [transfers](crate::channel::transfers) there are few places, and
//! sometimes no memory; data that were started arrive after any time.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use sme_memory::{Place, Until};

use crate::channel::transfers::{Abilities, Modes, Outbound, Started, Ticket, Transfers};
use crate::channel::{Area, Channel, EAGER_BYTES, Segment, Way};
use crate::processor::Free;

/// The behaviour of the wires.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Bytes of room in each stream, at least 1.
    pub room: usize,
    /// Decides who goes first, and how long pieces are.
    pub seed: u64,
}

/// The transfers of the runs that [`run`] makes.
pub const RUNS: [Option<Abilities>; 4] = [
    None,
    Some(with(Modes::NORMAL, true)),
    Some(with(
        Modes {
            eager_bytes: Some(96),
            lazy_bytes: Some(400),
            engine_bytes: Some(300),
        },
        true,
    )),
    Some(with(
        Modes {
            eager_bytes: Some(0),
            lazy_bytes: None,
            engine_bytes: Some(0),
        },
        false,
    )),
];

const fn with(modes: Modes, shows_arrivals: bool) -> Abilities {
    Abilities {
        modes,
        has_server: false,
        shows_arrivals,
    }
}

/// Places that a rank may have open at a time.
const PLACES: Ticket = 3;

/// Ranks that wait for what cannot come: their numbers, and the places in their programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck(pub Vec<(u32, &'static Location<'static>)>);

/// A rank's end of the wires.
#[derive(Debug)]
pub struct Wire {
    hub: Arc<Mutex<Hub>>,
    rank: u32,
}

#[derive(Clone, Debug)]
enum Waits {
    /// For bytes that arrive, room in one of these streams, or a transfer.
    Streams(Vec<u32>),
    Byte(Place, Until),
    Lock(u32),
}

/// Bytes of each rank's shared memory.
const AREA_BYTES: usize = 1 << 12;

#[derive(Debug)]
struct Hub {
    setting: Setting,
    ranks: u32,
    /// By sender and receiver.
    streams: Vec<VecDeque<u8>>,
    /// For each rank what it waits for, and where.
    waits: Vec<Option<(Waits, &'static Location<'static>)>>,
    /// The shared memory of each rank, and whether its lock is taken.
    areas: Vec<Vec<u8>>,
    locks: Vec<bool>,
    abilities: Option<Abilities>,
    /// The open places, by rank and number, and what has come there.
    places: BTreeMap<(u32, Ticket), Opened>,
    /// Transfers that have been started: their number and sender.
    flying: Vec<(Started, u32, Outbound)>,
    started: u32,
    /// By rank: whether a transfer has arrived or left since the rank last looked.
    events: Vec<bool>,
    /// The rank at which each looked first when it last looked for bytes.
    looked: Vec<u32>,
    now: u64,
    random: u64,
}

/// A place: its room in bytes, and what has come.
#[derive(Debug)]
struct Opened {
    room: u64,
    came: Option<Vec<u8>>,
}

impl Hub {
    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn draw(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below.max(1) as u64) as usize
    }

    fn stream(&mut self, from: u32, to: u32) -> &mut VecDeque<u8> {
        &mut self.streams[(from * self.ranks + to) as usize]
    }

    fn arrived(&mut self, rank: u32) -> Option<u32> {
        let (first, ranks) = (self.looked[rank as usize] + 1, self.ranks);
        let mut from = (0..ranks).map(|step| (first + step) % ranks);
        from.find(|&from| !self.stream(from, rank).is_empty())
    }

    fn has_room(&mut self, from: u32, to: u32) -> bool {
        let room = self.setting.room;
        self.stream(from, to).len() < room
    }

    /// Returns whether `rank` can go on.
    fn may_run(&mut self, rank: u32) -> bool {
        match self.waits[rank as usize].clone() {
            None => true,
            Some((Waits::Streams(full), _)) => {
                self.events[rank as usize]
                    || self.arrived(rank).is_some()
                    || full.iter().any(|&to| self.has_room(rank, to))
            }
            Some((Waits::Byte(at, until), _)) => until.holds(*self.byte(at)),
            Some((Waits::Lock(of), _)) => !self.locks[of as usize],
        }
    }

    fn shows_arrivals(&self) -> bool {
        self.abilities
            .is_none_or(|abilities| abilities.shows_arrivals)
    }

    /// Data come to their place.
    fn lands(&mut self, from: u32, data: Outbound) {
        let place = self.places.get_mut(&(data.to, data.ticket));
        // A message that goes to a place which is not open is a mistake of the device's.
        match place {
            Some(Opened {
                room,
                came: came @ None,
            }) if data.bytes.len() as u64 <= *room => *came = Some(data.bytes),
            _ => panic!("place {} of rank {} is not free", data.ticket, data.to),
        }
        self.events[data.to as usize] |= self.shows_arrivals();
        self.events[from as usize] = true;
    }

    /// One of the transfers that have been started ends.
    fn one_lands(&mut self) {
        if !self.flying.is_empty() {
            let chosen = self.draw(self.flying.len());
            let (_, from, data) = self.flying.swap_remove(chosen);
            self.lands(from, data);
        }
    }

    fn byte(&mut self, at: Place) -> &mut u8 {
        &mut self.areas[at.node as usize][at.offset as usize]
    }
}

impl Wire {
    /// Lets others go first, and then does `act`.
    async fn step<T>(&self, act: impl FnOnce(&mut Hub) -> T + Send) -> T {
        let mut asked = false;
        poll_fn(move |_| match std::mem::replace(&mut asked, true) {
            false => Poll::Pending,
            true => Poll::Ready(()),
        })
        .await;
        let mut hub = self.hub.lock();
        hub.now += 1;
        if !hub.flying.is_empty() && hub.draw(4) == 0 {
            hub.one_lands();
        }
        act(&mut hub)
    }
}

impl Wire {
    /// Lets others go first, and on until this rank no longer waits for that.
    async fn rest(&self, waits: Waits, site: &'static Location<'static>) {
        self.hub.lock().waits[self.rank as usize] = Some((waits, site));
        self.step(|hub| hub.waits[self.rank as usize] = None).await;
    }
}

impl Area for Wire {
    fn bytes(&self) -> u64 {
        AREA_BYTES as u64
    }

    async fn read(&self, at: Place, _: Way) -> u8 {
        self.step(|hub| *hub.byte(at)).await
    }

    async fn set(&self, at: Place, value: u8, _: Way) {
        self.step(|hub| *hub.byte(at) = value).await;
    }

    async fn wait(&self, at: Place, until: Until, _: Way, site: &'static Location<'static>) -> u8 {
        self.rest(Waits::Byte(at, until), site).await;
        *self.hub.lock().byte(at)
    }

    async fn put(&self, at: Place, bytes: &[u8]) {
        for (place, &byte) in (0..).zip(bytes) {
            self.step(|hub| *hub.byte(at.plus(place)) = byte).await;
        }
    }

    async fn get(&self, at: Place, count: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for place in 0..count {
            bytes.push(self.step(|hub| *hub.byte(at.plus(place))).await);
        }
        bytes
    }

    async fn take(&self, rank: u32) {
        self.rest(Waits::Lock(rank), Location::caller()).await;
        self.hub.lock().locks[rank as usize] = true;
    }

    async fn clear(&self, rank: u32) {
        self.step(|hub| hub.locks[rank as usize] = false).await;
    }
}

impl Transfers for Wire {
    fn abilities(&self) -> Abilities {
        let abilities = self.hub.lock().abilities;
        abilities.unwrap_or(with(Modes::NORMAL, true))
    }

    async fn open(&self, room: u64, _: Option<u64>) -> Option<Ticket> {
        self.step(|hub| {
            let mut all = 0..PLACES;
            let free = all.find(|&place| !hub.places.contains_key(&(self.rank, place)))?;
            let came = None;
            hub.places.insert((self.rank, free), Opened { room, came });
            Some(free)
        })
        .await
    }

    async fn take(&self, ticket: Ticket, bytes: u64) -> Option<Vec<u8>> {
        self.step(|hub| {
            let key = (self.rank, ticket);
            let came = hub.places.get_mut(&key)?.came.take();
            // A device that looks before it is told would take what was there before.
            assert!(came.is_some() || hub.shows_arrivals(), "{ticket} is empty");
            let mut came = came?;
            let room = hub.places.remove(&key)?.room;
            // Behind a shorter message the place has what was there before.
            came.resize(bytes.min(room) as usize, 0xee);
            Some(came)
        })
        .await
    }

    async fn close(&self, ticket: Ticket) {
        self.step(|hub| hub.places.remove(&(self.rank, ticket)))
            .await;
    }

    async fn push(&self, data: Outbound) -> Result<(), Outbound> {
        self.step(|hub| match hub.draw(5) {
            0 => Err(data),
            _ => {
                hub.lands(self.rank, data);
                Ok(())
            }
        })
        .await
    }

    async fn start(&self, data: Outbound) -> Result<Started, Outbound> {
        self.step(|hub| match hub.draw(5) {
            0 => Err(data),
            _ => {
                hub.started += 1;
                let started = Started(hub.started);
                hub.flying.push((started, self.rank, data));
                Ok(started)
            }
        })
        .await
    }

    async fn has_left(&self, started: Started) -> bool {
        self.step(|hub| hub.flying.iter().all(|&(other, ..)| other != started))
            .await
    }

    async fn copy(&self, _: &[u8], _: Option<u64>) -> Option<u64> {
        self.step(|hub| (hub.draw(4) > 0).then_some(0)).await
    }

    async fn wake_server(&self) {}
}

impl Channel for Wire {
    type Area = Self;
    type Processor = Free;
    type Transfers = Self;

    fn eager_bytes(&self) -> Option<u64> {
        let abilities = self.hub.lock().abilities;
        abilities.map_or(Some(EAGER_BYTES), |these| these.modes.eager_bytes)
    }

    fn transfers(&self) -> Option<&Self> {
        self.hub.lock().abilities.map(|_| self)
    }

    fn processor(&self) -> &Free {
        &Free
    }

    fn area(&self) -> Option<&Self> {
        Some(self)
    }

    fn rank(&self) -> u32 {
        self.rank
    }

    fn ranks(&self) -> u32 {
        self.hub.lock().ranks
    }

    async fn write(&self, to: u32, segments: &[Segment<'_>]) -> usize {
        self.step(|hub| {
            let room = hub.setting.room - hub.stream(self.rank, to).len();
            let all: usize = segments.iter().map(|segment| segment.bytes.len()).sum();
            let most = room.min(all);
            let accepted = match most {
                0 => 0,
                _ => 1 + hub.draw(most),
            };
            let bytes = segments.iter().flat_map(|segment| segment.bytes);
            let stream = hub.stream(self.rank, to);
            stream.extend(bytes.take(accepted));
            accepted
        })
        .await
    }

    async fn arrived(&self) -> Option<u32> {
        self.step(|hub| {
            let found = hub.arrived(self.rank)?;
            hub.looked[self.rank as usize] = found;
            Some(found)
        })
        .await
    }

    async fn read(
        &self,
        from: u32,
        most: usize,
        _address: Option<u64>,
        into: &mut Vec<u8>,
    ) -> usize {
        self.step(|hub| {
            let there = hub.stream(from, self.rank).len().min(most);
            let taken = match there {
                0 => 0,
                _ => 1 + hub.draw(there),
            };
            into.extend(hub.stream(from, self.rank).drain(..taken));
            taken
        })
        .await
    }

    async fn wait(&self, full: &[u32], site: &'static Location<'static>) {
        self.rest(Waits::Streams(full.to_vec()), site).await;
        self.hub.lock().events[self.rank as usize] = false;
    }

    fn unread(&self) -> Vec<u32> {
        Vec::new()
    }

    async fn now(&self) -> u64 {
        self.step(|hub| hub.now).await
    }
}

/// Runs `program` as each of `ranks` ranks to its end, once without transfers and then with some;
/// returns what the ranks returned in the last run.
///
/// # Errors
/// [`Stuck`] of the first run that ends with it names those that wait for what cannot come.
pub fn run<F: Future>(
    ranks: u32,
    setting: Setting,
    mut program: impl FnMut(Wire) -> F,
) -> Result<Vec<F::Output>, Stuck> {
    let mut outcomes = Vec::new();
    for abilities in RUNS {
        outcomes = run_with(ranks, setting, abilities, &mut program)?;
    }
    Ok(outcomes)
}

/// The same once, with these transfers, or without.
///
/// # Errors
/// [`Stuck`]
pub fn run_with<F: Future>(
    ranks: u32,
    setting: Setting,
    abilities: Option<Abilities>,
    mut program: impl FnMut(Wire) -> F,
) -> Result<Vec<F::Output>, Stuck> {
    let count = ranks as usize;
    let hub = Arc::new(Mutex::new(Hub {
        setting: Setting {
            room: setting.room.max(1),
            ..setting
        },
        ranks,
        streams: vec![VecDeque::new(); count * count],
        waits: vec![None; count],
        areas: vec![vec![0; AREA_BYTES]; count],
        locks: vec![false; count],
        abilities,
        places: BTreeMap::new(),
        flying: Vec::new(),
        started: 0,
        events: vec![false; count],
        looked: vec![0; count],
        now: 0,
        random: setting.seed,
    }));
    let mut programs: Vec<Option<Pin<Box<F>>>> = (0..ranks)
        .map(|rank| {
            let hub = Arc::clone(&hub);
            Some(Box::pin(program(Wire { hub, rank })))
        })
        .collect();
    let mut outcomes: Vec<Option<F::Output>> = (0..ranks).map(|_| None).collect();
    loop {
        let mut hub_now = hub.lock();
        let runnable: Vec<u32> = (0..ranks)
            .filter(|&rank| programs[rank as usize].is_some() && hub_now.may_run(rank))
            .collect();
        if runnable.is_empty() && !hub_now.flying.is_empty() {
            hub_now.one_lands();
            continue;
        }
        if runnable.is_empty() {
            let waits = hub_now.waits.iter();
            let stuck = (0..).zip(waits).zip(&programs);
            let stuck = stuck.filter(|(_, program)| program.is_some());
            let stuck: Vec<_> = stuck
                .filter_map(|((rank, wait), _)| wait.as_ref().map(|(_, site)| (rank, *site)))
                .collect();
            return if stuck.is_empty() {
                Ok(outcomes.into_iter().flatten().collect())
            } else {
                Err(Stuck(stuck))
            };
        }
        let chosen = runnable[hub_now.draw(runnable.len())] as usize;
        drop(hub_now);
        if let Some(program) = &mut programs[chosen] {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(outcome) = program.as_mut().poll(&mut context) {
                programs[chosen] = None;
                outcomes[chosen] = Some(outcome);
            }
        }
    }
}
