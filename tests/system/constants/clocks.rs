//! Clocks and voltages of a chip that change: the one workload in which their constants act.

use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{LEAST_DIVIDER, MOST_DIVIDER, Scaling};
use sme_sim::machine::Setup;
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

use super::machine;

/// Cores of the chip with which the first island is complete.
const CORES: u32 = 16;

/// An island at each voltage in turn, and a tile of it with each divider there: which of them are
/// allowed, the time of it, and the energy.
pub fn clocks_and_voltages(name: &str, set: Option<&str>) -> String {
    let machine = machine(name, set);
    let found: Arc<Mutex<Vec<String>>> = Arc::default();
    let tell = Arc::clone(&found);
    let program = move |memory: ThreadMemory, node, _| {
        let tell = Arc::clone(&tell);
        async move {
            if node % 2 == 0 {
                memory.set_divider(MOST_DIVIDER).await.unwrap();
            }
            if node != 0 {
                return;
            }
            // The others have done so by then.
            memory.delay(Time::from_ns(100_000)).await;
            for hundreds in 7..=13 {
                memory.set_voltage(100 * hundreds).await.unwrap();
                for divider in LEAST_DIVIDER..=MOST_DIVIDER {
                    let result = memory.set_divider(divider).await;
                    tell.lock().push(format!("{result:?}"));
                }
            }
        }
    };
    let mut built = machine
        .build(Setup::new(machine.shape(), CORES, 1), program)
        .unwrap();
    built.run(1, |_| {}).unwrap();
    let found = found.lock().join("\n");
    format!("{found}\n{} {:?}", built.end(), built.energy())
}
