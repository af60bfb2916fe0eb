//! A node as the machine that runs it sees it ([`Inhabited`]): the activity of its threads, the
//! contents of its memory, and figures of the run.

use sme_memory::Place;

use super::core::Waiting;
use super::node::Node;
use super::trace::Trace;
use super::{critical_path, did, link_loads};
use crate::families::sme::address::Target;
use crate::families::sme::engine::Inspect;
use crate::kernel::thread::Site;
use crate::machine::nodes::Inhabited;
use crate::observe::among::Figures;
use crate::observe::calls::OpenCall;
use crate::observe::failure::Fault;
use crate::observe::log::Log;
use crate::observe::path::{End, PathStep};
use crate::observe::spans::SpanRecord;
use crate::observe::survey::{AtHome, Survey, Waits, WaitsOn};
use crate::observe::traffic::{CacheTraffic, LinkLoad};
use crate::observe::unwritten::Dirty;
use crate::parts::address::CACHEABLE;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::time::Time;

impl Waits for Node {
    fn number(&self) -> u32 {
        self.here.me
    }

    fn threads(&self) -> u32 {
        self.cores.len() as u32
    }

    fn doing(&self, core: u16) -> Option<&'static str> {
        let core = &self.cores[core];
        Some(match core.waiting {
            Waiting::Finished => return None,
            Waiting::Cache => "spins in its cache",
            Waiting::Uncached => "polls through the engine",
            Waiting::Asleep => match core.operation {
                Operation::Join(..) => "waits for the end of a thread",
                Operation::TakeSignal(_) => "waits for a signal",
                _ => "sleeps on a futex",
            },
            Waiting::Nothing
            | Waiting::StoreBuffer
            | Waiting::Drained
            | Waiting::Posted
            | Waiting::Update
            | Waiting::Fault => "does not get any further",
        })
    }

    fn waits_on(&self, core: u16) -> Option<WaitsOn> {
        let (address, bytes, until) = self.cores[core].awaited()?;
        let home = match self.here.constants.map.target(address) {
            Ok(Target::Local(physical)) => (self.here.me, physical),
            Ok(Target::Global(place) | Target::Cached(place)) => {
                (place.node, self.here.constants.map.physical(place.offset))
            }
            Err(_) => (self.here.me, address),
        };
        let cached = if address & CACHEABLE == 0 {
            let own = Some(home.1).filter(|_| home.0 == self.here.me);
            let line = own.and_then(|physical| self.domain.known_line(physical));
            line.and_then(|line| self.domain.cached(core, line, bytes))
        } else {
            let caches = self.caches.as_ref();
            caches.and_then(|caches| Some(bytes.pick(caches.copy(core, address)?)))
        };
        let private = self.here.constants.map.private_bytes;
        Some(WaitsOn {
            address,
            bytes,
            until,
            home,
            offset: home.1.checked_sub(private),
            cached,
        })
    }

    fn wait_site(&self, core: u16) -> Option<Site> {
        self.cores[core].operation.wait_site()
    }

    fn call(&self, core: u16) -> Option<&OpenCall> {
        self.here.record.spans.call(core)
    }

    fn dirty(&self) -> Vec<Dirty> {
        let caches = self.caches.iter().flat_map(|caches| caches.dirty());
        let dirty = caches.filter_map(|(core, address, enables, cached)| {
            let target = self.here.constants.map.target(address | CACHEABLE);
            let (Ok(Target::Cached(place)) | Ok(Target::Global(place))) = target else {
                return None;
            };
            Some(Dirty {
                core: Some(core),
                place,
                enables,
                cached,
            })
        });
        dirty.collect()
    }

    fn at_home(&self, address: u64, bytes: Bytes) -> AtHome {
        let Some(line) = self.domain.known_line(address) else {
            return AtHome::default();
        };
        let (writer, written_at) = self.domain.last_write(line, bytes);
        AtHome {
            newest: self.domain.newest(line, bytes),
            in_memory: self.domain.in_memory(line, bytes),
            writer,
            written_at,
        }
    }
}

impl Inhabited for Node {
    fn spans(&self) -> &SpanRecord {
        &self.here.record.spans
    }

    fn did(&self, figures: &mut Figures) {
        did(&self.here.record, self.here.events, figures);
    }

    fn survey(&self, survey: &mut Survey) {
        let moving = self.cores.iter().any(|c| {
            matches!(
                c.waiting,
                Waiting::Nothing
                    | Waiting::StoreBuffer
                    | Waiting::Drained
                    | Waiting::Posted
                    | Waiting::Update
            )
        });
        let fetching = self.caches.iter().any(|caches| !caches.is_quiet());
        survey.moving |= moving || fetching || self.domain.serves_a_core();
        survey.moving |= self.system.awaits_alarm();
        if !survey.moving {
            let polling = self.cores.iter().filter(|c| c.waiting == Waiting::Uncached);
            survey.looks.extend(polling.map(|core| core.looks));
        }
        survey.posted += self.here.posted;
        survey.performed += self.here.performed;
        survey.progress += self.here.progress;
        survey.faulty |= self.here.fault.is_some();
        survey.events += self.here.events;
        self.here.record.spans.sums.reached(&mut survey.reached);
    }

    fn fault(&self) -> Option<Fault> {
        self.here.fault
    }

    fn log(&self) -> Option<&Log> {
        self.here.log.as_deref()
    }

    fn start_log(&mut self, log: Log) {
        self.here.log = Some(Box::new(log));
    }

    fn bytes(&self) -> usize {
        self.bytes_besides_engine() + self.engine().engine().state_bytes()
    }

    fn ended(&self) {
        self.engine().ended();
    }

    fn cache_traffic(&self) -> CacheTraffic {
        let caches = self.caches.as_ref();
        caches.map_or(CacheTraffic::default(), |caches| caches.traffic())
    }

    fn keep_last_writes(&mut self, offsets: &[u64]) {
        let map = &self.here.constants.map;
        let addresses = offsets.iter().map(|&offset| map.physical(offset));
        self.domain.keep_last_writes(addresses);
    }

    fn preset(&mut self, offset: u64, value: u64) {
        self.domain
            .preset(self.here.constants.map.physical(offset), value);
    }

    fn word(&self, offset: u64) -> u64 {
        self.domain.word(self.here.constants.map.physical(offset))
    }

    fn link_loads(&self, end: Time) -> Vec<LinkLoad> {
        let links = self.engine().engine().counters().links;
        link_loads(
            &self.here.constants,
            end,
            (self.here.me, links, &self.here.record),
        )
    }

    fn trace_from(&mut self, from: Time) {
        let trace = Trace::new(&self.here.constants, self.here.me, self.cores.len(), from);
        self.here.agenda.set_trace(trace);
    }

    fn critical_path(
        nodes: &[Self],
        end: End,
        start: Time,
        name: &dyn Fn(Place) -> String,
    ) -> Vec<PathStep> {
        critical_path::critical_path(nodes, end, start, name)
    }
}
