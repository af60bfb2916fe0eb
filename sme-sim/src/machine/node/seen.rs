//! A node as the machine that runs it sees it.

use sme_memory::Place;

use super::{Hardware, Node, Waiting};
use crate::kernel::thread::Site;
use crate::machine::nodes::Inhabited;
use crate::observe::among::Figures;
use crate::observe::calls::OpenCall;
use crate::observe::energy::Energy;
use crate::observe::failure::Fault;
use crate::observe::log::Log;
use crate::observe::path::{End, PathStep};
use crate::observe::spans::SpanRecord;
use crate::observe::survey::{AtHome, Survey, Waits, WaitsOn};
use crate::observe::trace::{Trace, Traced};
use crate::observe::traffic::{CacheTraffic, LinkLoad};
use crate::observe::unwritten::Dirty;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::time::Time;

impl<H: Hardware> Waits for Node<H> {
    fn number(&self) -> u32 {
        self.cpu.me
    }

    fn threads(&self) -> u32 {
        self.cpu.threads.len() as u32
    }

    fn doing(&self, thread: u16) -> Option<&'static str> {
        let thread = self.cpu.thread(thread);
        Some(match (thread.waiting, thread.operation) {
            (Waiting::Finished, _) => return None,
            (Waiting::Spins, _) => "spins in its cache",
            (Waiting::Watches, Operation::TakeInterrupt(_)) => "waits for an interrupt",
            (Waiting::Watches, Operation::WaitAny(flags, ..)) if flags.count > 1 => {
                "polls its own memory for any of several flags, the first"
            }
            (Waiting::Watches, _) => "polls its own memory",
            (Waiting::Sleeps, Operation::Join(..)) => "waits for the end of a thread",
            (Waiting::Sleeps, Operation::TakeSignal(_)) => "waits for a signal",
            (Waiting::Sleeps, _) => "sleeps on a futex",
            (Waiting::Polls, Operation::Take(..)) => "polls a register",
            (Waiting::Polls, _) => "polls another node",
            _ => "does not get any further",
        })
    }

    fn waits_on(&self, thread: u16) -> Option<WaitsOn> {
        let (address, bytes, until) = self.cpu.looks_at(thread)?;
        let home = self.hardware.home(&self.cpu, address)?;
        Some(WaitsOn {
            address,
            bytes,
            until,
            home,
            offset: Some(home.1),
            cached: self.hardware.copy(&self.cpu, thread, address, bytes),
        })
    }

    fn wait_site(&self, thread: u16) -> Option<Site> {
        self.cpu.thread(thread).operation.wait_site()
    }

    fn call(&self, thread: u16) -> Option<&OpenCall> {
        self.cpu.spans.call(thread)
    }

    fn dirty(&self) -> Vec<Dirty> {
        self.hardware.dirty()
    }

    fn at_home(&self, address: u64, bytes: Bytes) -> AtHome {
        self.hardware.at_home(address, bytes)
    }
}

impl<H: Hardware> Inhabited for Node<H> {
    fn spans(&self) -> &SpanRecord {
        &self.cpu.spans
    }

    fn did(&self, figures: &mut Figures) {
        let cpu = &self.cpu;
        figures.add(&cpu.spans.sums, cpu.traffic, (cpu.events, cpu.now));
    }

    fn survey(&self, survey: &mut Survey) {
        for thread in &self.cpu.threads {
            match thread.waiting {
                Waiting::Polls => survey.looks.push(thread.looks),
                Waiting::Nothing | Waiting::Answer => survey.moving = true,
                Waiting::Spins
                | Waiting::Watches
                | Waiting::Sleeps
                | Waiting::Fault
                | Waiting::Finished => {}
            }
        }
        survey.moving |= self.cpu.system.awaits_alarm();
        survey.posted += self.cpu.posted;
        survey.performed += self.cpu.performed;
        survey.progress += self.cpu.progress;
        survey.faulty |= self.cpu.fault.is_some();
        survey.events += self.cpu.events;
        self.cpu.spans.sums.reached(&mut survey.reached);
    }

    fn fault(&self) -> Option<Fault> {
        self.cpu.fault
    }

    fn log(&self) -> Option<&Log> {
        self.cpu.log.as_deref()
    }

    fn start_log(&mut self, log: Log) {
        self.cpu.log = Some(Box::new(log));
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.cpu.bytes() + self.hardware.bytes()
    }

    fn ended(&self) {}

    fn cache_traffic(&self) -> CacheTraffic {
        self.hardware.cache_traffic()
    }

    fn programs_ended(&self) -> Time {
        self.cpu.ended
    }

    fn energy(&self, until: Time) -> Option<Energy> {
        self.hardware.energy(&self.cpu, until)
    }

    fn keep_last_writes(&mut self, offsets: &[u64]) {
        self.hardware.keep_last_writes(offsets);
    }

    fn preset(&mut self, offset: u64, value: u64) {
        self.hardware.preset(offset, value);
    }

    fn word(&self, offset: u64) -> u64 {
        self.hardware.at_home(offset, Bytes::word(offset)).newest
    }

    fn link_loads(&self, _: Time) -> Vec<LinkLoad> {
        Vec::new()
    }

    fn trace_from(&mut self, from: Time) {
        self.cpu.trace = Some(Box::new(Trace::new(from)));
    }

    fn critical_path(
        nodes: &[Self],
        end: End,
        start: Time,
        name: &dyn Fn(Place) -> String,
    ) -> Vec<PathStep> {
        let traces: Vec<&Trace> = nodes
            .iter()
            .filter_map(|n| n.cpu.trace.as_deref())
            .collect();
        let Some(first) = nodes.first().filter(|_| traces.len() == nodes.len()) else {
            return Vec::new();
        };
        let place = |node, address| {
            let place = first.cpu.setting.space.shared(node, address);
            place.map_or(Place { node, offset: 0 }, |(place, _)| place)
        };
        Traced::new(traces, &place).critical_path(end, start, name)
    }
}
