//! An engine in RTL as the simulator has it, which looks at more pins than a waveform shows, beside
//! the cycle model's, as the simulator steps both.

use sme_sim::families::sme::engine::Inspect;

use super::*;
use crate::rtl_engine::{RtlEngine, Surroundings};

/// Cycles with traffic, and then without, until all is out.
const BUSY: u64 = 2_500;
const CYCLES: u64 = 3_500;

/// Gives all credits back, one of each kind in a cycle, and sends nothing.
fn drain(load: &mut Load, inputs: &mut Vec<Value>) {
    load.pins.clear();
    for channel in HtChannel::ALL {
        let owed = &mut load.owed_by_host[channel as usize];
        if *owed > 0 {
            *owed -= 1;
            load.pins.put(&Input::HostCredit(channel));
        }
    }
    for (port, channels) in load.owed_by_links.iter_mut().enumerate() {
        for (channel, owed) in channels
            .iter_mut()
            .enumerate()
            .filter(|(_, owed)| **owed > 0)
        {
            *owed -= 1;
            let (port, channel) = (port as u16, channel as u8);
            load.pins.put(&Input::LinkCredit { port, channel });
        }
    }
    inputs.extend_from_slice(load.pins.values());
}

/// Returns the output as the host's pins have it: of a packet that a host would not send, not all
/// is kept.
fn on_pins(output: Output) -> Output {
    let Output::Host(packet) = output else {
        return output;
    };
    let beat = DoublewordsBeat::from(packet).fields();
    Output::Host(beat.packet(packet.trace()))
}

#[test]
fn an_engine_in_rtl_gives_out_and_counts_what_the_cycle_model_does() {
    for seed in 0..4 {
        let site = EngineSite::any(seed);
        let engine = Engine::new(&site.spec, &site.topology, site.hosts);
        let rtl = Clocked::new(engine.expect("few credits"));
        let surroundings = Surroundings::new(&site.spec, &site.topology, site.hosts);
        let mut model = Model::new(&site, &rtl);
        let mut rtl = RtlEngine::new(rtl, &Arc::new(surroundings), site.node);
        let mut load = Load::new(site);
        let mut random = Random::seeded(seed);
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for now in 0..CYCLES {
            inputs.clear();
            if now < BUSY {
                load.inputs(&mut random, &outputs, &mut inputs);
            } else {
                load.learn(&outputs);
                drain(&mut load, &mut inputs);
            }
            for input in inputs_of(&inputs) {
                model.engine.input(now, input);
                rtl.input(now, input);
            }
            let next = model.engine.next_cycle();
            assert_eq!(next, rtl.next_cycle(), "seed {seed}, before cycle {now}");
            let (mut expected, mut given) = (Vec::new(), Vec::new());
            if next.is_some_and(|next| next <= now) {
                model.engine.step(now, &mut expected);
                rtl.step(now, &mut given);
            }
            let shown: Vec<_> = expected.iter().copied().map(on_pins).collect();
            assert_eq!(shown, given, "seed {seed}, cycle {now}");
            model.show_all(&expected, &mut outputs);
            let faults = &rtl.counters().faults;
            assert_eq!(&model.counted.faults, faults, "seed {seed}, cycle {now}");
        }
        assert_eq!(rtl.counters(), model.engine.counters(), "seed {seed}");
        let faults = &rtl.counters().faults;
        let counts = [
            faults.dropped_writes,
            faults.failed_reads,
            faults.unknown_tags,
        ];
        assert!(!counts.contains(&0), "seed {seed}: {counts:?}");
    }
}
