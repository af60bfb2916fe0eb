//! Sending and receiving.

use sme_memory::{Blocks, Memory, Own, Tagged};

use super::{Kind, Rcce};

/// `near` so many words further on.
fn further(near: Option<Own>, words: usize) -> Option<Own> {
    near.map(|Own(address)| Own(address + 8 * words as u64))
}

impl<M: Memory + Tagged + Blocks> Rcce<M> {
    /// Sends `words`, which lie at `from` in this UE's own memory, to UE `to`; ends when that has
    /// received them all.
    pub async fn send(&self, to: u32, words: &[u64], from: Option<Own>) {
        let room = self.room();
        for (number, piece) in words.chunks(room).enumerate() {
            self.put(self.me, 0, piece, further(from, number * room))
                .await;
            let sent = self.flag(to, Kind::Sent(self.me));
            self.memory.set(sent, 1).await;
            self.wait_for(Kind::Ready(to), 1).await;
            let ready = self.flag(self.me, Kind::Ready(to));
            self.memory.set(ready, 0).await;
        }
    }

    /// Receives as many words as UE `from` sends, into `words`, which lie at `to` in this UE's own
    /// memory.
    pub async fn receive(&self, from: u32, words: &mut [u64], to: Option<Own>) {
        let room = self.room();
        for (number, piece) in words.chunks_mut(room).enumerate() {
            self.wait_for(Kind::Sent(from), 1).await;
            let sent = self.flag(self.me, Kind::Sent(from));
            self.memory.set(sent, 0).await;
            self.get(from, 0, piece, further(to, number * room)).await;
            let ready = self.flag(from, Kind::Ready(self.me));
            self.memory.set(ready, 1).await;
        }
    }
}
