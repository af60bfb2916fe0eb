//! Test-and-set registers: a byte in a line of its own each, 0 while it is clear. A thread that
//! waits for one spins and then sleeps, and says so by the byte's eighth bit, as with flags.

use std::sync::atomic::Ordering;

use crossbeam::utils::CachePadded;

use super::parking::Parking;
use super::patience::Turns;
use super::sync::AtomicU8;
use super::{Protocol, SLEEPER, Thread};
use crate::{Register, TestAndSet};

/// Registers of each node.
const OF_A_NODE: u32 = 4;

/// Marks a sleeper's address as a register's.
const ADDRESS: u64 = 1 << 62;

const SET: u8 = 1;

/// The registers of all nodes.
pub(super) struct Registers(Box<[CachePadded<AtomicU8>]>);

impl Registers {
    pub(super) fn new(nodes: u32) -> Self {
        let count = nodes as usize * OF_A_NODE as usize;
        Self(
            (0..count)
                .map(|_| CachePadded::new(AtomicU8::new(0)))
                .collect(),
        )
    }

    /// The cell of `register`, and the address on which its waiters sleep. Panics where there is
    /// none: the program has made up a register.
    fn at(&self, register: Register) -> (&AtomicU8, u64) {
        let Register { node, number } = register;
        let index = u64::from(node) * u64::from(OF_A_NODE) + u64::from(number);
        match self.0.get(index as usize).filter(|_| number < OF_A_NODE) {
            Some(cell) => (cell, ADDRESS | index),
            None => panic!("there is no {register:?}"),
        }
    }
}

/// Sleeps until the register may have been cleared after it held `seen`; may return without reason.
#[cold]
fn sleep_on(parking: &Parking, (cell, address): (&AtomicU8, u64), seen: u8) {
    let asleep = seen | SLEEPER;
    // Relaxed: the bit carries no data; whether it is still there is looked at under the bucket's
    // lock.
    let bit = cell.compare_exchange(seen, asleep, Ordering::Relaxed, Ordering::Relaxed);
    if seen == asleep || bit.is_ok() {
        parking.sleep_if(address, || cell.load(Ordering::Relaxed) == asleep);
    }
}

impl<P: Protocol> TestAndSet for Thread<P> {
    fn registers(&self) -> u32 {
        OF_A_NODE
    }

    #[inline]
    async fn test_and_set(&self, register: Register) -> bool {
        let (cell, _) = self.shared.registers.at(register);
        // Acquire, as a wait for a flag: accesses before the clear happen before those that follow.
        cell.fetch_or(SET, P::WAIT) & SET == 0
    }

    async fn take(&self, register: Register) {
        let at = self.shared.registers.at(register);
        let mut turns = Turns::begin(self.shared.patience, &self.experience);
        loop {
            let seen = at.0.fetch_or(SET, P::WAIT);
            if seen & SET == 0 {
                return turns.end();
            }
            if !turns.pass() {
                sleep_on(&self.shared.parking, at, seen);
            }
        }
    }

    #[inline]
    async fn clear(&self, register: Register) {
        let (cell, address) = self.shared.registers.at(register);
        let before = cell.swap(0, P::SET);
        if before & SLEEPER != 0 && P::WAKE {
            self.shared.parking.wake(address, u32::MAX);
        }
    }
}
