//! The sweep over the channel: everything that can be written, and everything that has arrived, for
//! all requests of the rank. It is made inside calls only.

use std::panic::Location;

use super::packet::HEADER_BYTES;
use super::{Device, Outgoing};
use crate::channel::{Channel, Segment};

/// A place in a rank's program.
pub(crate) type Site = &'static Location<'static>;

/// Makes progress until `done` gives something; `site` is the place at which the rank's program
/// waits.
pub(crate) async fn until<C: Channel, T>(
    device: &Device,
    channel: &C,
    site: Site,
    mut done: impl FnMut() -> Option<T> + Send,
) -> T {
    loop {
        settle(device, channel).await;
        if let Some(outcome) = done() {
            return outcome;
        }
        let full = sweep(device, channel).await;
        settle(device, channel).await;
        if let Some(outcome) = done() {
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

/// Lets the tasks go on with what has ended, and charges the work that was done.
pub(crate) async fn settle<C: Channel>(device: &Device, channel: &C) {
    device.poll_tasks();
    let owed = device.take_owed();
    if !owed.is_empty() {
        channel.work(&owed).await;
    }
}

/// One sweep; returns the destinations for which the channel has no room.
async fn sweep<C: Channel>(device: &Device, channel: &C) -> Vec<u32> {
    write_all(device, channel).await;
    while let Some(from) = channel.arrived().await {
        handle(device, channel, from).await;
        settle(device, channel).await;
    }
    // Handling a packet may have queued answers.
    write_all(device, channel).await
}

async fn write_all<C: Channel>(device: &Device, channel: &C) -> Vec<u32> {
    let busy = device.take_busy();
    let mut full = Vec::new();
    for to in busy {
        // Nothing else of this rank runs meanwhile: a packet that is taken out is put back.
        while let Some(mut packet) = device.next_to(to) {
            if !write(channel, to, &mut packet).await {
                device.put_back(to, packet);
                full.push(to);
                break;
            }
            device.has_left(&packet);
        }
    }
    device.add_busy(&full);
    full
}

/// Writes the rest of `packet`; whether all of it was taken.
async fn write<C: Channel>(channel: &C, to: u32, packet: &mut Outgoing) -> bool {
    loop {
        let header = packet.header.get(packet.sent..).unwrap_or_default();
        let from = packet.sent.saturating_sub(HEADER_BYTES);
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
            let missing = HEADER_BYTES - incoming.header.len();
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

    /// Whether there are packets for destinations other than those.
    fn busy_beyond(&self, full: &[u32]) -> bool {
        let state = self.state.lock();
        state.busy.iter().any(|to| !full.contains(to))
    }

    fn next_to(&self, to: u32) -> Option<Outgoing> {
        self.state.lock().outgoing[to as usize].pop_front()
    }

    fn put_back(&self, to: u32, packet: Outgoing) {
        self.state.lock().outgoing[to as usize].push_front(packet);
    }

    fn has_left(&self, packet: &Outgoing) {
        if let Some(send) = packet.completes {
            self.state.lock().ends(send, super::Outcome::default());
        }
    }
}
