//! Cases for networks on chip.

use super::cases::Me;
use super::{Found, Whole};
use crate::{
    Flag, Flags, Gathers, Mailbox, NodeSet, Place, Receives, Route, Transfer, Until, Word,
};

/// Bytes of a message that is no whole number of words, nor of packets.
const BYTES: u32 = 203;

/// Offsets in a node's memory: of what it sends, of what it receives, and of flags.
const OUT: u64 = 0;
const IN: u64 = 256;
const TELLS: u64 = 3072;

fn at<M: Whole>(memory: &M, offset: u64) -> Word {
    let node = memory.node();
    memory.word(Place { node, offset }, Route::Nearest)
}

/// Flag `number` of the thread's own node.
fn tells<M: Whole>(memory: &M, number: u64) -> Flag {
    let (node, offset) = (memory.node(), TELLS + 64 * number);
    memory.flag(Place { node, offset }, Route::Nearest)
}

fn value(node: u32, word: u64) -> u64 {
    0x0123_4567_89ab_cdef_u64.rotate_left(7 * word as u32) ^ u64::from(node)
}

async fn write_out<M: Whole>(memory: &M) {
    for word in 0..u64::from(BYTES).div_ceil(8) {
        let value = value(memory.node(), word);
        memory.store(at(memory, OUT + 8 * word), value).await;
    }
    memory.fence().await;
}

/// Compares what has come from the other node at `offset` with what that has sent; the word behind
/// it is as it was.
async fn compare<M: Whole>(memory: &M, offset: u64, found: &Found) {
    let other = 1 - memory.node();
    for word in 0..=u64::from(BYTES) / 8 {
        let left = u64::from(BYTES) - 8 * word;
        let mask = if left < 8 {
            !(u64::MAX << (8 * left))
        } else {
            u64::MAX
        };
        let came = memory.load(at(memory, offset + 8 * word)).await;
        found.compare("a word that was sent", came, value(other, word) & mask);
    }
}

/// Waits until the first threads of both nodes have called it equally often.
async fn both<M: Whole>(memory: &M) {
    memory.signal(NodeSet(0b11), 1, 1 << memory.node()).await;
    memory.wait(tells(memory, 7), Until::Is(1)).await;
    memory.set(tells(memory, 7), 0).await;
}

/// Lets [`both`] be called, by the first thread of a node.
async fn meets<M: Whole>(memory: &M) {
    let mailbox = Mailbox {
        word: at(memory, 4000),
        gathers: Gathers::AllOf(0b11),
        tells: tells(memory, 7),
    };
    memory.listen(1, mailbox).await;
}

fn window<M: Whole>(memory: &M, transfers: u32) -> Receives {
    Receives::Buffer {
        at: at(memory, IN),
        bytes: 1024,
        transfers,
        tells: tells(memory, 0),
        event: Some(tells(memory, 6)),
    }
}

fn transfer<M: Whole>(memory: &M, to: NodeSet, offset: u32) -> Transfer {
    Transfer {
        to,
        tag: 5,
        offset,
        from: at(memory, OUT),
        bytes: BYTES,
    }
}

/// Each node sends to the other by its core, and then by a channel.
pub(super) async fn buffer<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    if thread > 0 {
        return;
    }
    let other = NodeSet::one(1 - node);
    meets(&memory).await;
    write_out(&memory).await;
    memory.open(5, window(&memory, 1)).await;
    both(&memory).await;
    memory.push(transfer(&memory, other, 0)).await;
    memory.wait(tells(&memory, 6), Until::Is(1)).await;
    found.compare("a flag", memory.read(tells(&memory, 0)).await.into(), 1);
    compare(&memory, IN, &found).await;
    memory.set(tells(&memory, 0), 0).await;
    memory.set(tells(&memory, 6), 0).await;
    both(&memory).await;
    let (sent, left) = (tells(&memory, 1), tells(&memory, 5));
    let told = (sent, Some(left));
    memory.start(3, transfer(&memory, other, 512), told).await;
    memory.wait(left, Until::Is(1)).await;
    found.compare("a flag of a channel", memory.read(sent).await.into(), 1);
    memory.wait(tells(&memory, 6), Until::Is(1)).await;
    found.compare("a flag", memory.read(tells(&memory, 0)).await.into(), 1);
    compare(&memory, IN + 512, &found).await;
    memory.close(5).await;
}

/// Node 0 receives two from node 1 and one from itself.
pub(super) async fn collected<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    if thread > 0 {
        return;
    }
    meets(&memory).await;
    write_out(&memory).await;
    if node == 0 {
        memory.open(5, window(&memory, 3)).await;
    }
    both(&memory).await;
    let to = NodeSet::one(0);
    if node == 1 {
        memory.push(transfer(&memory, to, 0)).await;
        memory.push(transfer(&memory, to, 256)).await;
        return;
    }
    memory.push(transfer(&memory, to, 512)).await;
    memory.wait(tells(&memory, 0), Until::Is(1)).await;
    compare(&memory, IN + 256, &found).await;
    compare(&memory, IN, &found).await;
    let first = memory.load(at(&memory, IN + 512)).await;
    found.compare("a word sent to oneself", first, value(0, 0));
}

/// Node 1 sends three messages, of a word each, to two slots.
pub(super) async fn queue<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    if thread > 0 {
        return;
    }
    meets(&memory).await;
    let slots = Flags {
        first: tells(&memory, 0),
        stride: 64,
        count: 2,
    };
    if node == 0 {
        let queue = Receives::Queue {
            at: at(&memory, IN),
            slot_bytes: 120,
            tells: slots,
            event: None,
        };
        memory.open(5, queue).await;
    }
    both(&memory).await;
    let message = Transfer {
        bytes: 8,
        ..transfer(&memory, NodeSet::one(0), 0)
    };
    let send = async |number: u64| {
        memory.store(at(&memory, OUT), number).await;
        memory.fence().await;
        memory.push(message).await;
    };
    let take = async |number: u64| {
        let slot = number as u32 % 2;
        memory.wait(slots.at(slot), Until::Is(1)).await;
        let at = at(&memory, IN + 120 * u64::from(slot));
        found.compare("a message", memory.load(at).await, 70 + number);
        memory.set(slots.at(slot), 0).await;
    };
    match node {
        0 => {
            take(0).await;
            take(1).await;
            both(&memory).await;
            take(2).await;
        }
        _ => {
            send(70).await;
            send(71).await;
            both(&memory).await;
            send(72).await;
        }
    }
}

/// Node 1 sends to both nodes at once.
pub(super) async fn several<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    if thread > 0 {
        return;
    }
    meets(&memory).await;
    write_out(&memory).await;
    memory.open(5, window(&memory, 1)).await;
    both(&memory).await;
    if node == 1 {
        let all = NodeSet(0b11);
        memory.push(transfer(&memory, all, 0)).await;
    }
    memory.wait(tells(&memory, 0), Until::Is(1)).await;
    let first = memory.load(at(&memory, IN)).await;
    found.compare("a word that went to all", first, value(1, 0));
}

/// In each round both nodes send the other a word, which that reads after the barrier.
pub(super) async fn mailbox<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    if thread > 0 {
        return;
    }
    meets(&memory).await;
    memory.open(5, window(&memory, 1)).await;
    for round in 0..4 {
        both(&memory).await;
        memory.store(at(&memory, OUT), round).await;
        memory.fence().await;
        let word = Transfer {
            bytes: 8,
            ..transfer(&memory, NodeSet::one(1 - node), 0)
        };
        memory.push(word).await;
        memory.wait(tells(&memory, 0), Until::Is(1)).await;
        memory.set(tells(&memory, 0), 0).await;
        both(&memory).await;
        if node == 1 {
            // Node 0 goes on to its next round, and must wait there.
            for word in 0..400 {
                memory.load(at(&memory, 8 * (word % 64))).await;
            }
        }
        let came = memory.load(at(&memory, IN)).await;
        found.compare("the word of this round", came, round);
    }
}

/// Node 0 counts what both send, of which some comes before it listens.
pub(super) async fn counter<M: Whole>(memory: M, (node, thread): Me, found: Found) {
    if thread > 0 {
        return;
    }
    meets(&memory).await;
    let count = Mailbox {
        word: at(&memory, 4008),
        gathers: Gathers::Sum,
        tells: tells(&memory, 3),
    };
    let send = async |value: u64| memory.signal(NodeSet::one(0), 2, value).await;
    send(5).await;
    both(&memory).await;
    if node == 1 {
        send(100).await;
        return;
    }
    memory.listen(2, count).await;
    while memory.load(count.word).await < 110 {
        memory.wait(count.tells, Until::Is(1)).await;
        memory.set(count.tells, 0).await;
    }
    found.compare("the sum", memory.load(count.word).await, 110);
}
