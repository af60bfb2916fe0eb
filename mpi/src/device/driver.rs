//! The sweep over the channel: everything that can be written, and everything that has arrived, for
//! all requests of the rank. It is made inside calls only.

use std::panic::Location;

use super::direct::Direct;
use super::packet::Header;
use super::{Device, Outgoing};
use crate::channel::transfers::Transfers;
use crate::channel::{Channel, Segment};
use crate::processor::Work;

/// A place in a rank's program.
pub(crate) type Site = &'static Location<'static>;

/// Makes progress until `done` gives something; `site` is the place at which the rank's program
/// waits.
pub(crate) async fn until<C: Channel, T>(
    device: &Device,
    channel: &C,
    site: Site,
    done: impl FnMut() -> Option<T> + Send,
) -> T {
    let outcome = until_last(device, channel, site, done).await;
    settle(device, channel).await;
    outcome
}

/// The same before a call is left: its last work is still owed, and charged when that is done.
pub(crate) async fn until_last<C: Channel, T>(
    device: &Device,
    channel: &C,
    site: Site,
    mut done: impl FnMut() -> Option<T> + Send,
) -> T {
    loop {
        if let Some(outcome) = settled(device, channel, &mut done).await {
            return outcome;
        }
        let full = sweep(device, channel).await;
        if let Some(outcome) = settled(device, channel, &mut done).await {
            return outcome;
        }
        // A task may have queued packets that no sweep has tried to write.
        if device.busy_beyond(&full) {
            continue;
        }
        channel.wait(&full, site).await;
    }
}

/// Makes the progress that can be made at once.
pub(crate) async fn once<C: Channel>(device: &Device, channel: &C) {
    settle(device, channel).await;
    sweep(device, channel).await;
    settle(device, channel).await;
}

/// Tells others of what has begun, where the channel has transfers.
pub(crate) async fn starts<C: Channel>(device: &Device, channel: &C) {
    if channel.transfers().is_some() {
        settle(device, channel).await;
        write_all(device, channel).await;
    }
}

/// Settles, unless `done` gives something before that: then the work is still owed.
async fn settled<C: Channel, T>(
    device: &Device,
    channel: &C,
    mut done: impl FnMut() -> Option<T> + Send,
) -> Option<T> {
    device.poll_tasks();
    if let Some(outcome) = done() {
        return Some(outcome);
    }
    match charge(device, channel).await {
        true => done(),
        false => None,
    }
}

/// Lets the tasks go on with what has ended, and charges the work that was done.
pub(crate) async fn settle<C: Channel>(device: &Device, channel: &C) {
    device.poll_tasks();
    charge(device, channel).await;
}

/// Charges the work that was done; whether there was any.
pub(crate) async fn charge<C: Channel>(device: &Device, channel: &C) -> bool {
    let owed = device.take_owed();
    let was_any = !owed.is_empty();
    if was_any {
        channel.work(&owed).await;
    }
    was_any
}

/// One sweep; returns the destinations for which the channel has no room. All of what the rank
/// sends to itself comes within it: no other rank makes room for that.
async fn sweep<C: Channel>(device: &Device, channel: &C) -> Vec<u32> {
    let own = device.rank();
    loop {
        write_all(device, channel).await;
        let mut has_own_come = false;
        while let Some(from) = channel.arrived().await {
            has_own_come |= from == own;
            handle(device, channel, from).await;
            settle(device, channel).await;
        }
        ends_transfers(device, channel).await;
        // Handling a packet may have queued answers.
        let full = write_all(device, channel).await;
        if !(has_own_come && device.has_packets_to(own)) {
            return full;
        }
    }
}

/// Sends all packets, and starts all transfers.
async fn write_all<C: Channel>(device: &Device, channel: &C) -> Vec<u32> {
    opens_places(device, channel).await;
    let full = write_packets(device, channel).await;
    match starts_transfers(device, channel).await {
        false => full,
        // One may have made a packet: with its data, or to say that they have come.
        true => write_packets(device, channel).await,
    }
}

/// Opens and closes places, and copies what is to be sent later.
async fn opens_places<C: Channel>(device: &Device, channel: &C) {
    let Some(transfers) = channel.transfers() else {
        return;
    };
    for ticket in device.take_closings() {
        transfers.close(ticket).await;
    }
    while let Some(opens) = device.next_opening() {
        let ticket = transfers.open(opens.bytes, opens.address).await;
        device.opened(opens, ticket);
    }
    while let Some(copy) = device.next_copy() {
        let address = transfers.copy(&copy.bytes, copy.address()).await;
        device.copied(copy, address);
    }
}

/// Starts the transfers that have their places; whether there was one.
async fn starts_transfers<C: Channel>(device: &Device, channel: &C) -> bool {
    let Some(transfers) = channel.transfers() else {
        return false;
    };
    let mut was_one = false;
    while let Some(mut ready) = device.next_ready() {
        was_one = true;
        // The place has been found.
        device.owe(Work::Find, 1);
        settle(device, channel).await;
        let data = std::mem::take(&mut ready.data);
        let to = data.to;
        match ready.is_for_engine() {
            true => device.started(&ready, transfers.start(data).await),
            false => device.pushed(to, &ready, transfers.push(data).await),
        }
    }
    if device.take_wake() {
        transfers.wake_server().await;
    }
    was_one
}

/// Ends the sends whose data have left, and the receives whose data have come.
async fn ends_transfers<C: Channel>(device: &Device, channel: &C) {
    let Some(transfers) = channel.transfers() else {
        return;
    };
    for (request, started) in device.leaving() {
        if transfers.has_left(started).await {
            device.left(request);
        }
    }
    for (receive, ticket, bytes) in device.landings() {
        if let Some(bytes) = transfers.take(ticket, bytes).await {
            device.lands(receive, bytes);
        }
    }
}

async fn write_packets<C: Channel>(device: &Device, channel: &C) -> Vec<u32> {
    let busy = device.take_busy();
    let mut full = Vec::new();
    for to in busy {
        // Only a server runs meanwhile, which adds packets behind: one that is taken out is put
        // back.
        while let Some(mut packet) = device.next_to(to) {
            if !write(channel, to, &mut packet).await {
                device.put_back(to, packet);
                full.push(to);
                break;
            }
            device.has_left(&packet);
        }
    }
    if !full.is_empty() {
        device.add_busy(&full);
    }
    full
}

/// Writes the rest of `packet`; whether all of it was taken.
async fn write<C: Channel>(channel: &C, to: u32, packet: &mut Outgoing) -> bool {
    loop {
        let header = packet.header.get(packet.sent..).unwrap_or_default();
        let from = packet.sent.saturating_sub(packet.header.len());
        let segments = [header, &packet.data[from..]];
        if segments.iter().all(|segment| segment.is_empty()) {
            return true;
        }
        let address = packet
            .address
            .map(|address| address.saturating_add(from as u64));
        let [header, data] = segments;
        let segments = [(header, None), (data, address)];
        let segments = segments.map(|(bytes, address)| Segment { bytes, address });
        let taken = channel.write(to, &segments).await;
        if taken == 0 {
            return false;
        }
        packet.sent += taken;
    }
}

/// Reads the bytes that have arrived `from` a rank, to the end of one packet at most.
async fn handle<C: Channel>(device: &Device, channel: &C, from: u32) {
    let mut incoming = device.arriving(from);
    match &mut incoming.body {
        None => {
            let may_be_short = channel.transfers().is_some();
            let missing = Header::missing(&incoming.header, may_be_short);
            let header = &mut incoming.header;
            channel.read(from, missing, None, header).await;
            device.begins(from, &mut incoming);
        }
        Some(body) => {
            let missing = body.header.length as usize - body.bytes.len();
            let come = body.bytes.len() as u64;
            let address = body.address.map(|address| address.saturating_add(come));
            channel.read(from, missing, address, &mut body.bytes).await;
        }
    }
    device.arrives(from, incoming);
}

impl Device {
    fn take_busy(&self) -> Vec<u32> {
        std::mem::take(&mut self.state.lock().busy)
    }

    fn add_busy(&self, full: &[u32]) {
        self.state.lock().busy.extend_from_slice(full);
    }

    /// Returns whether there are packets for destinations other than those.
    fn busy_beyond(&self, full: &[u32]) -> bool {
        let state = self.state.lock();
        let has_work = state.direct.as_ref().is_some_and(Direct::has_work);
        has_work || state.busy.iter().any(|to| !full.contains(to))
    }

    fn has_packets_to(&self, to: u32) -> bool {
        !self.state.lock().outgoing.of(to).is_empty()
    }

    fn next_to(&self, to: u32) -> Option<Outgoing> {
        self.state.lock().outgoing.of(to).pop_front()
    }

    fn put_back(&self, to: u32, packet: Outgoing) {
        self.state.lock().outgoing.of(to).push_front(packet);
    }

    fn has_left(&self, packet: &Outgoing) {
        if let Some(send) = packet.completes {
            self.state.lock().ends(send, super::Outcome::default());
        }
    }
}
