//! Path names of connectors (Ho et al., Table I):
//!
//! ```text
//! /mppa/sync/RX_NODES:CNOC_TAG
//! /mppa/portal/RX_NODES:DNOC_TAG
//! /mppa/rqueue/RX_NODE:DNOC_TAG/TX_NODES:CNOC_TAG/CREDITS.MSIZE
//! /mppa/channel/RX_NODE:DNOC_TAG/TX_NODE:CNOC_TAG
//! ```
//!
//! Nodes are a number, or a list in brackets of numbers and ranges: `[0..7,12,128]`. Numbers are
//! those of network interfaces: clusters from 0, the northern subsystem's four from 128, the
//! southern from 192, the eastern from 160, the western from 224. (The paper has 128; the others
//! are not verified.)

use sme_memory::NodeSet;

use super::Hardware;

/// A path that names no connector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct BadPath {
    /// The path.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// One end of a connector: nodes, and a tag there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The nodes.
    pub nodes: NodeSet,
    /// The tag: of the control network as it was given, of the data network counted from the first
    /// interface of the nodes.
    pub tag: u16,
}

/// A connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// A barrier.
    Sync(End),
    /// A window into memory.
    Portal(End),
    /// A queue.
    RQueue {
        /// The receiver.
        to: End,
        /// The senders, and where they get their credits back.
        from: End,
        /// Messages that each sender may have under way.
        credits: u16,
        /// The most bytes of a message.
        message_bytes: u16,
    },
    /// A link from one to one.
    Channel {
        /// The receiver.
        to: End,
        /// The sender.
        from: End,
    },
}

/// Interfaces of an I/O subsystem.
const OF_SUBSYSTEM: u16 = 4;

/// The first interface of each subsystem, in the order of their nodes.
const SUBSYSTEMS: [u16; 4] = [128, 192, 160, 224];

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// [`BadPath`]
    pub fn parse(path: &str, hardware: &Hardware) -> Result<Self, BadPath> {
        let bad = |reason: String| BadPath {
            path: path.to_owned(),
            reason,
        };
        let parts: Vec<&str> = path.split('/').collect();
        let control = |text| end(text, hardware, false).map_err(bad);
        let data = |text| end(text, hardware, true).map_err(bad);
        let one = |end: End| match end.nodes.0.count_ones() {
            1 => Ok(end),
            _ => Err(bad(
                "a receiver, or the sender of a channel, is one node".to_owned()
            )),
        };
        match parts[..] {
            ["", "mppa", "sync", to] => Ok(Self::Sync(control(to)?)),
            ["", "mppa", "portal", to] => Ok(Self::Portal(data(to)?)),
            ["", "mppa", "channel", to, from] => Ok(Self::Channel {
                to: one(data(to)?)?,
                from: one(control(from)?)?,
            }),
            ["", "mppa", "rqueue", to, from, size] => {
                let (credits, message_bytes) = size
                    .split_once('.')
                    .and_then(|(credits, bytes)| Some((credits.parse().ok()?, bytes.parse().ok()?)))
                    .filter(|&(credits, bytes)| credits > 0 && bytes > 0)
                    .ok_or_else(|| bad(format!("{size} is not CREDITS.MSIZE, both above 0")))?;
                Ok(Self::RQueue {
                    to: one(data(to)?)?,
                    from: control(from)?,
                    credits,
                    message_bytes,
                })
            }
            _ => Err(bad("neither sync, portal, rqueue nor channel".to_owned())),
        }
    }
}

/// Reads nodes and a tag.
fn end(text: &str, hardware: &Hardware, is_of_data: bool) -> Result<End, String> {
    let (nodes, tag) = text
        .rsplit_once(':')
        .ok_or_else(|| format!("{text} is not NODES:TAG"))?;
    let number: u16 = tag
        .parse()
        .ok()
        .filter(|&tag| tag < hardware.tags)
        .ok_or_else(|| format!("tag {tag} is not below {}", hardware.tags))?;
    let list = nodes.strip_prefix('[').map(|list| list.strip_suffix(']'));
    let list = match list {
        None => nodes,
        Some(Some(list)) => list,
        Some(None) => return Err(format!("{nodes} lacks a bracket")),
    };
    let mut set = NodeSet(0);
    let mut interfaces = None;
    for item in list.split(',') {
        let (first, last) = item.split_once("..").unwrap_or((item, item));
        let read = |text: &str| {
            let number = text.trim().parse::<u16>();
            number.map_err(|_| format!("{text} is not the number of a node"))
        };
        for number in read(first)?..=read(last)? {
            let (node, interface) = node(number, hardware)?;
            set.0 |= 1 << node;
            if is_of_data && *interfaces.get_or_insert(interface) != interface {
                return Err(format!("{nodes} are of interfaces of different numbers"));
            }
        }
    }
    match set.0 {
        0 => Err(format!("{nodes} are no nodes")),
        _ => Ok(End {
            nodes: set,
            tag: interfaces.unwrap_or(0) * hardware.tags + number,
        }),
    }
}

/// The node of an interface, and which of the node's it is.
fn node(number: u16, hardware: &Hardware) -> Result<(u32, u16), String> {
    if u32::from(number) < hardware.clusters {
        return Ok((number.into(), 0));
    }
    let of_side = |first: &u16| (*first..first + OF_SUBSYSTEM).contains(&number);
    match SUBSYSTEMS.iter().position(of_side) {
        Some(side) => Ok((hardware.clusters + side as u32, number - SUBSYSTEMS[side])),
        None => Err(format!("there is no node {number}")),
    }
}

/// The number of the first interface of a node.
pub fn interface(node: u32, hardware: &Hardware) -> u16 {
    let side = node.checked_sub(hardware.clusters);
    let first = side.and_then(|side| SUBSYSTEMS.get(side as usize));
    first.copied().unwrap_or(node as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CHIP: Hardware = Hardware {
        clusters: 16,
        tags: 256,
        channels: 8,
    };

    fn parse(path: &str) -> Result<Path, String> {
        Path::parse(path, &CHIP).map_err(|error| error.to_string())
    }

    #[test]
    fn paths_of_table_1_are_read() {
        let end = |nodes, tag| End {
            nodes: NodeSet(nodes),
            tag,
        };
        assert_eq!(
            parse("/mppa/sync/[0..3,128]:7"),
            Ok(Path::Sync(end(0x1000f, 7)))
        );
        assert_eq!(
            parse("/mppa/portal/15:255"),
            Ok(Path::Portal(end(1 << 15, 255)))
        );
        // The third interface of the subsystem in the east.
        assert_eq!(
            parse("/mppa/portal/162:1"),
            Ok(Path::Portal(end(1 << 18, 513)))
        );
        assert_eq!(
            parse("/mppa/rqueue/128:4/[0..15]:9/8.120"),
            Ok(Path::RQueue {
                to: end(1 << 16, 4),
                from: end(0xffff, 9),
                credits: 8,
                message_bytes: 120,
            })
        );
        assert_eq!(
            parse("/mppa/channel/2:4/3:5"),
            Ok(Path::Channel {
                to: end(4, 4),
                from: end(8, 5),
            })
        );
    }

    #[test]
    fn other_paths_are_refused() {
        for (path, says) in [
            ("", "neither sync, portal, rqueue nor channel"),
            ("/mppa/pipe/0:1", "neither sync"),
            ("/mppa/sync/0", "0 is not NODES:TAG"),
            ("/mppa/sync/0:256", "tag 256 is not below 256"),
            ("/mppa/sync/16:1", "there is no node 16"),
            ("/mppa/sync/[0..:1", "[0.. lacks a bracket"),
            ("/mppa/sync/[0..x]:1", "x is not the number of a node"),
            ("/mppa/sync/[3..2]:1", "[3..2] are no nodes"),
            (
                "/mppa/portal/[128,129]:1",
                "interfaces of different numbers",
            ),
            ("/mppa/channel/[0,1]:1/2:1", "one node"),
            ("/mppa/rqueue/0:1/1:1/0.120", "0.120 is not CREDITS.MSIZE"),
            ("/mppa/rqueue/0:1/1:1/8", "8 is not CREDITS.MSIZE"),
        ] {
            let refused = parse(path).unwrap_err();
            assert!(
                refused.starts_with(path) && refused.contains(says),
                "{refused}"
            );
        }
    }

    proptest! {
        /// Any text is read or refused.
        #[test]
        fn no_path_panics(path in "/mppa/(sync|portal|rqueue|channel)/[\\[\\]0-9:.,/x-]{0,24}") {
            let _ = parse(&path);
        }
    }
}
