//! Programs over MPPAIPC that say what went wrong. They run on real threads here, and on the
//! simulated processor in the tests of the root package.

use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::Word;
use sme_mpi::mppaipc::portal::{Piece, WhenBusy};
use sme_mpi::mppaipc::{Fabric, Ipc, IpcError};
use sme_mpi::processor::Processor;

/// The violations that the threads of a program have found.
#[derive(Clone, Debug, Default)]
pub struct Wrong(Arc<Mutex<Vec<String>>>);

impl Wrong {
    /// Records a violation where `found` is not `expected`.
    pub fn compare<T: PartialEq + std::fmt::Debug>(&self, what: &str, found: T, expected: T) {
        if found != expected {
            let wrong = format!("{what}: {found:?} instead of {expected:?}");
            self.0.lock().push(wrong);
        }
    }

    /// All that was found.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

/// A barrier of the first nodes, which they all come to in each round, each as late as it is told.
pub async fn barrier<M: Fabric, P: Processor + Clone>(
    ipc: &Ipc<M, P>,
    (nodes, rounds): (u32, u32),
    arrived: &Mutex<Vec<u32>>,
    wrong: &Wrong,
) -> Result<(), IpcError> {
    // Two, in turns: a bit reaches one node before another, and the bit of a node's next round
    // would be lost where its last one still waits for others.
    let mut syncs = Vec::new();
    for tag in [3, 4] {
        let path = format!("/mppa/sync/[0..{}]:{tag}", nodes - 1);
        let rx = ipc.sync_rx(&path, (1 << nodes) - 1).await?;
        syncs.push((rx, ipc.sync_tx(&path)?));
    }
    let me = ipc.node();
    let at = ipc.reserve("data", 8)?;
    for round in 1..=rounds {
        for _ in 0..(me * 7 + round * 3) % 11 {
            ipc.memory().store(at, 1).await;
        }
        arrived.lock()[me as usize] = round;
        let (rx, tx) = &syncs[round as usize % 2];
        tx.write(1 << me).await;
        rx.wait().await;
        let last = arrived.lock().iter().copied().min();
        wrong.compare("the last to arrive", last >= Some(round), true);
    }
    Ok(())
}

/// Node 0 collects a piece from each other node in one buffer (Ho et al., Fig. 2), round after
/// round, by cores or by channels; a sync says when the next may come.
pub async fn collects<M: Fabric, P: Processor + Clone>(
    ipc: &Ipc<M, P>,
    (nodes, rounds): (u32, u32),
    by_channel: bool,
    wrong: &Wrong,
) -> Result<(), IpcError> {
    const WORDS: u64 = 37;
    let me = u64::from(ipc.node());
    let ready = format!("/mppa/sync/[1..{}]:4", nodes - 1);
    let value = |node: u64, round: u32, word: u64| node << 40 | u64::from(round) << 20 | word;
    if me == 0 {
        let rx = ipc.portal_rx("/mppa/portal/0:5")?;
        let ready = ipc.sync_tx(&ready)?;
        let words = WORDS * u64::from(nodes - 1);
        let at = ipc.reserve("buffers", 8 * words)?;
        for round in 0..rounds {
            let read = rx.aio_read(at, 8 * words as u32, nodes - 1).await?;
            ready.write(1).await;
            rx.wait(read).await;
            let mut came = vec![0; words as usize];
            ipc.memory().view(at, &mut came).await;
            let all =
                (1..u64::from(nodes)).flat_map(|node| (0..WORDS).map(move |word| (node, word)));
            let expected: Vec<u64> = all.map(|(node, word)| value(node, round, word)).collect();
            wrong.compare("what was collected", came, expected);
        }
        return Ok(());
    }
    let may = ipc.sync_rx(&ready, 1).await?;
    let tx = ipc.portal_tx("/mppa/portal/0:5")?;
    let from = ipc.reserve("buffers", 8 * WORDS)?;
    for round in 0..rounds {
        let words: Vec<u64> = (0..WORDS).map(|word| value(me, round, word)).collect();
        ipc.memory().lay(from, &words).await;
        may.wait().await;
        let piece = Piece {
            from,
            bytes: 8 * WORDS as u32,
            offset: 8 * (WORDS * (me - 1)) as u32,
        };
        match by_channel {
            false => tx.pwrite(piece).await,
            true => {
                let write = tx.aio_write(piece, WhenBusy::Wait).await?;
                ipc.wait_write(write).await;
            }
        }
    }
    Ok(())
}

/// All other nodes send messages to node 0, as many as they are told, each longer than the one
/// before; node 0 serves them.
pub async fn serves<M: Fabric, P: Processor + Clone>(
    ipc: &Ipc<M, P>,
    (nodes, credits): (u32, u32),
    messages: u64,
    wrong: &Wrong,
) -> Result<(), IpcError> {
    let path = format!("/mppa/rqueue/0:9/[1..{}]:2/{credits}.120", nodes - 1);
    let me = ipc.node();
    // A message to a queue that is not open would be lost.
    let ready = format!("/mppa/sync/[1..{}]:4", nodes - 1);
    let length = |number: u64| 1 + number as usize % 15;
    if me == 0 {
        let mut rx = ipc.rqueue_rx(&path).await?;
        ipc.sync_tx(&ready)?.write(1).await;
        let mut next = vec![0; nodes as usize];
        let mut words = [0; 15];
        for _ in 0..messages * u64::from(nodes - 1) {
            let sender = rx.take_callback(&mut words).await.from;
            let number = next[sender as usize];
            next[sender as usize] += 1;
            let expected = vec![u64::from(sender) << 32 | number; length(number)];
            let came = words[..length(number)].to_vec();
            wrong.compare("a message", came, expected);
        }
        return Ok(());
    }
    let tx = ipc.rqueue_tx(&path).await?;
    ipc.sync_rx(&ready, 1).await?.wait().await;
    for number in 0..messages {
        let word = u64::from(me) << 32 | number;
        tx.write(&vec![word; length(number)]).await?;
    }
    let refused = tx.write(&[0; 16]).await;
    let expected = Err(IpcError::TooLong {
        bytes: 128,
        most: 120,
    });
    wrong.compare("a message that is too long", refused, expected);
    Ok(())
}

/// Node 1 sends node 0 messages over a channel, of which the last is too long for its buffer.
pub async fn meets<M: Fabric, P: Processor + Clone>(
    ipc: &Ipc<M, P>,
    messages: &[u32],
    wrong: &Wrong,
) -> Result<(), IpcError> {
    let path = "/mppa/channel/0:6/1:7";
    let at: Word = ipc.reserve("buffers", 4096)?;
    let value = |number: u64, word: u64| number << 32 | word;
    if ipc.node() == 0 {
        let rx = ipc.channel_rx(path)?;
        for (number, &words) in (0..).zip(messages) {
            rx.read(at, 8 * words).await;
            let mut came = vec![0; words as usize];
            ipc.memory().view(at, &mut came).await;
            let expected: Vec<u64> = (0..words.into()).map(|word| value(number, word)).collect();
            wrong.compare("a message", came, expected);
        }
        rx.read(at, 8).await;
        return Ok(());
    }
    let tx = ipc.channel_tx(path).await?;
    for (number, &words) in (0..).zip(messages) {
        let all: Vec<u64> = (0..words.into()).map(|word| value(number, word)).collect();
        ipc.memory().lay(at, &all).await;
        tx.write(at, 8 * words).await?;
    }
    let refused = tx.write(at, 16).await;
    let expected = Err(IpcError::TooLong { bytes: 16, most: 8 });
    wrong.compare("a message longer than its buffer", refused, expected);
    tx.write(at, 8).await
}
