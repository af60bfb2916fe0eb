//! Tagged lines, the write-combine buffer, registers, tables and interrupts, one by one.

use std::sync::{Arc, Mutex};

use sme_memory::{
    Blocks, Cacheable, Interrupts, Memory, Own, Register, Route, Tagged, TestAndSet, Timer, Until,
    Word,
};

use sme_sim::parts::contract::Span;

use crate::chip::{MEMORY, chip, flag, place, run, word};

/// A list that programs append to.
fn list<T>() -> Arc<Mutex<Vec<T>>> {
    Arc::default()
}

/// A copy of a tagged line stays as it is until it is dropped, although others write.
#[test]
fn a_tagged_copy_is_stale_until_it_is_dropped() {
    let seen = list();
    run(2, |memory, node| {
        let seen = Arc::clone(&seen);
        async move {
            let tagged = word(&memory, place(0, 64), Route::Tagged);
            if node == 1 {
                memory.wait(flag(&memory, 1, 0), Until::Is(1)).await;
                memory.store(tagged, 7).await;
                memory.fence().await;
                memory.set(flag(&memory, 0, 0), 1).await;
                return;
            }
            let mut values = vec![memory.load(tagged).await];
            memory.set(flag(&memory, 1, 0), 1).await;
            memory.wait(flag(&memory, 0, 0), Until::Is(1)).await;
            values.push(memory.load(tagged).await);
            memory.invalidate_tagged().await;
            values.push(memory.load(tagged).await);
            *seen.lock().unwrap() = values;
        }
    })
    .unwrap();
    assert_eq!(*seen.lock().unwrap(), [0, 0, 7]);
}

/// A tagged line that was stored to leaves the core when a store goes to another line, or at a
/// fence.
#[test]
fn the_write_combine_buffer_keeps_a_line_back() {
    for drains in [false, true] {
        let seen = list();
        run(2, |memory, node| {
            let seen = Arc::clone(&seen);
            async move {
                let at = |line: u64| place(0, 64 + 32 * line);
                if node == 1 {
                    memory.store(word(&memory, at(0), Route::Tagged), 7).await;
                    if drains {
                        memory.store(word(&memory, at(1), Route::Tagged), 8).await;
                    }
                    return;
                }
                // Long after that.
                for _ in 0..100 {
                    memory.now().await;
                }
                let value = memory.load(word(&memory, at(0), Route::Global)).await;
                seen.lock().unwrap().push(value);
            }
        })
        .unwrap();
        assert_eq!(*seen.lock().unwrap(), [if drains { 7 } else { 0 }]);
    }
}

/// A thread sees what it has stored itself, wherever that is.
#[test]
fn a_core_sees_its_own_stores_in_the_write_combine_buffer() {
    let seen = list();
    run(1, |memory, _| {
        let seen = Arc::clone(&seen);
        async move {
            let tagged = word(&memory, place(30, 64), Route::Tagged);
            memory.store(tagged, 5).await;
            let loaded = memory.load(tagged).await;
            // Of a line that is there.
            memory.store(tagged, 6).await;
            let again = memory.load(tagged).await;
            seen.lock().unwrap().extend([loaded, again]);
        }
    })
    .unwrap();
    assert_eq!(*seen.lock().unwrap(), [5, 6]);
}

/// The registers have addresses: a load takes a test-and-set register, a store releases it.
#[test]
fn a_test_and_set_register_is_read_and_written_like_memory() {
    let seen = list();
    run(1, |memory, _| {
        let seen = Arc::clone(&seen);
        async move {
            // That of core 7: the second of tile 3.
            let (address, register) = (Word(0xe300_0400), Register { node: 7, number: 0 });
            let first = memory.load(address).await;
            let second = memory.load(address).await;
            let by_name = memory.test_and_set(register).await;
            memory.store(address, 0).await;
            let after = memory.test_and_set(register).await;
            seen.lock()
                .unwrap()
                .extend([first, second, by_name.into(), after.into()]);
        }
    })
    .unwrap();
    assert_eq!(*seen.lock().unwrap(), [1, 0, 0, 1]);
}

/// An entry of one's own table that leads nowhere is a fault which names it; one that is changed
/// leads where it says.
#[test]
fn a_table_decides_where_an_address_goes() {
    let unused = Word(0x4000_0040);
    let failure = run(1, |memory, _| async move {
        memory.load(unused).await;
    });
    let message = failure.unwrap_err().to_string();
    assert!(
        message.contains("entry 0x40 of its core's look-up table"),
        "{message}"
    );
    let seen = list();
    run(1, |memory, _| {
        let seen = Arc::clone(&seen);
        async move {
            let entry = |number: u64| Word(0xf800_0800 + 8 * number);
            // Segment 0x40 becomes the buffer of tile 5, as segment 0xc5 is.
            let bits = memory.load(entry(0xc5)).await;
            memory.store(entry(0x40), bits).await;
            memory
                .store(word(&memory, place(10, 64), Route::Global), 9)
                .await;
            let loaded = memory.load(unused).await;
            seen.lock().unwrap().extend([bits, loaded]);
        }
    })
    .unwrap();
    // Sub-destination 3, x = 5, y = 0.
    assert_eq!(*seen.lock().unwrap(), [3 << 10 | 5 << 13, 9]);
    // A sub-destination without anything behind it.
    let failure = run(1, |memory, _| async move {
        memory
            .store(Word(0xf800_0800 + 8 * 0x40), 5 << 10 | 1 << 13)
            .await;
        memory.load(unused).await;
    });
    let message = failure.unwrap_err().to_string();
    assert!(message.contains("0x003400"), "{message}");
}

/// Two interrupts in quick succession are one, as on the chip.
#[test]
fn an_interrupt_that_comes_while_one_is_pending_is_lost() {
    let failure = run(2, |memory, node| async move {
        if node == 0 {
            memory.interrupt(1).await;
            memory.interrupt(1).await;
            memory.set(flag(&memory, 1, 0), 1).await;
        } else {
            memory.wait(flag(&memory, 1, 0), Until::Is(1)).await;
            memory.take_interrupt().await;
            memory.take_interrupt().await;
        }
    });
    let report = failure.unwrap_err().to_string();
    assert!(report.contains("waits for an interrupt"), "{report}");
}

/// No cache makes room for a store: what is stored into a line that is not there goes to memory.
#[test]
fn a_store_that_misses_goes_to_memory() {
    let mut machine = chip(&[], 1, |memory, _| async move {
        let at = |line: u64| place(0, MEMORY + 32 * line);
        memory.load(word(&memory, at(0), Route::Cached)).await;
        memory.store(word(&memory, at(0), Route::Cached), 3).await;
        memory.store(word(&memory, at(1), Route::Cached), 4).await;
    });
    machine.run(1, |_| {}).unwrap();
    let home = |line: u64| machine.at_home(place(0, MEMORY + 32 * line));
    assert_eq!([home(0), home(1)], [0, 4]);
    assert_eq!(machine.unwritten(9).0, 1);
}

/// A flush empties the whole set of the second level.
#[test]
fn a_flush_writes_back_the_lines_of_the_same_set() {
    let mut machine = chip(&[], 1, |memory, _| async move {
        // Lines of one set are 64 KiB apart.
        let at = |line: u64| place(0, MEMORY + (line << 16));
        for line in 0..3 {
            let word = word(&memory, at(line), Route::Cached);
            memory.load(word).await;
            memory.store(word, 3 + line).await;
        }
        let neighbour = word(&memory, place(0, MEMORY + 32), Route::Cached);
        memory.load(neighbour).await;
        memory.store(neighbour, 9).await;
        memory.flush(word(&memory, at(0), Route::Cached)).await;
    });
    machine.run(1, |_| {}).unwrap();
    let home = |offset| machine.at_home(place(0, MEMORY + offset));
    assert_eq!(
        [home(0), home(1 << 16), home(2 << 16), home(32)],
        [3, 4, 5, 0]
    );
}

/// A block that was copied is paid for once: what follows takes as long as before it.
#[test]
fn a_copied_block_leaves_no_debt() {
    let mut machine = chip(&[], 1, |memory, _| async move {
        let at = |line: u64| word(&memory, place(40, 64 + 32 * line), Route::Tagged);
        let local = word(&memory, place(0, 64), Route::Global);
        for step in 0..2 {
            let span = Span::new("step", step);
            memory.begin(span).await;
            memory.store(at(0), 1).await;
            memory.fence().await;
            memory.end(span).await;
            memory.put(at(1), &[7; 40], Some(Own(1 << 16))).await;
            memory.fence().await;
            // Ends with work that no access has waited for.
            memory.put(local, &[7; 40], Some(Own(1 << 16))).await;
        }
    });
    machine.run(1, |_| {}).unwrap();
    let steps = machine.spans().called("step");
    let time = |step: usize| steps[step].last_end.since(steps[step].first_begin);
    assert_eq!(time(1), time(0));
}
