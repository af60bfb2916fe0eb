//! The barrier: UE 0 waits for all others and releases them, one after the other.

use sme_memory::{Blocks, Memory, Tagged};

use super::{Kind, Rcce};

impl<M: Memory + Tagged + Blocks> Rcce<M> {
    /// Ends when all UEs have called it as often as this one.
    pub async fn barrier(&mut self) {
        let value = 1 - self.barriers;
        self.barriers = value;
        if self.me > 0 {
            let arrived = self.flag(0, Kind::Arrived(self.me));
            self.memory.set(arrived, value).await;
            return self.wait_for(Kind::Release, value).await;
        }
        for other in 1..self.ues {
            self.wait_for(Kind::Arrived(other), value).await;
        }
        for other in 1..self.ues {
            let release = self.flag(other, Kind::Release);
            self.memory.set(release, value).await;
        }
    }
}
