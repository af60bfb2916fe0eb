//! The placement of memory: the line that holds a byte, and the socket whose memory controller
//! orders the accesses to that line.

use crate::families::sme::spec::{ClusterSpec, HomeSockets};
use crate::parts::line_size::LineSize;

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;

/// The lines of a node's memory and their homes.
#[derive(Clone, Copy, Debug)]
pub struct Homes {
    line: LineSize,
    /// Sockets that share the memory.
    sockets: u8,
    /// The binary logarithm of the lines that lie side by side on one socket.
    stretch: u8,
}

impl Homes {
    /// Of a machine.
    pub fn new(spec: &ClusterSpec) -> Self {
        let line = spec.cache.private.line();
        let all = spec.node.sockets as u8;
        let (sockets, lines) = match spec.coherence.homes {
            HomeSockets::First => (1, 1),
            HomeSockets::Lines => (all, 1),
            HomeSockets::Pages => (all, line.number(PAGE_BYTES)),
        };
        Self {
            line,
            sockets,
            stretch: lines.ilog2() as u8,
        }
    }

    /// The same lines, all on the first socket.
    pub fn on_one_socket(self) -> Self {
        Self { sockets: 1, ..self }
    }

    /// The number of the line that holds `address`.
    #[inline]
    pub fn line(&self, address: u64) -> u64 {
        self.line.number(address)
    }

    /// The address of the first byte of a line.
    #[inline]
    pub fn address(&self, line: u64) -> u64 {
        self.line.address(line)
    }

    /// The socket that is the home of a line.
    #[inline]
    pub fn of(&self, line: u64) -> u8 {
        match self.sockets {
            1 => 0,
            sockets => ((line >> self.stretch) % u64::from(sockets)) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::sme;
    use crate::machine::Machine;

    /// The homes of the memory of a machine, by address.
    fn homes(set: &[(&str, &str)]) -> impl Fn(u64) -> u8 + use<> {
        let machine = Machine::builtin("sme-prototype").expect("a machine");
        let machine = machine.with(set).expect("constants within their limits");
        let homes = Homes::new(sme::of(&machine).expect("a cluster of engines"));
        move |address| homes.of(homes.line(address))
    }

    #[test]
    fn sockets_take_turns() {
        let addresses = || (0..1 << 16).step_by(8);
        let first = homes(&[]);
        assert!(addresses().all(|address| first(address) == 0));
        for line in ["32 B", "64 B"] {
            let bytes = if line == "32 B" { 32 } else { 64 };
            let lines = homes(&[("cache.line", line), ("coherence.homes", "lines")]);
            let pages = homes(&[("cache.line", line), ("coherence.homes", "pages")]);
            for address in addresses() {
                assert_eq!(u64::from(lines(address)), address / bytes % 4);
                assert_eq!(u64::from(pages(address)), address / 4096 % 4);
            }
        }
    }
}
