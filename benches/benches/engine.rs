//! The speed at which the engine is stepped: one packet at a time on its four ways, links at full
//! load, and the route of a packet. Figures of one packet are per packet; divide by the steps in
//! the name.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sme_sim::families::sme::engine::{
    Design, Engine, EngineModel, HtPacket, Input, Kind, Output, Packet,
};
use sme_sim::machine::Machine;
use sme_sim::parts::fabric::{Router, Topology};
use std::hint::black_box;
use std::sync::Arc;

const NODE: u32 = 27;

fn design() -> Arc<Design> {
    let machine = Machine::builtin("sme-prototype").expect("it is built in");
    let topology: Topology = "mesh:8x8".parse().expect("a topology");
    Arc::new(
        Design::new(
            sme_sim::families::sme::of(&machine).expect("an SME cluster"),
            &topology,
            64,
        )
        .expect("it can be built"),
    )
}

fn packet(target: u32) -> Packet {
    let kind = Kind::PostedWrite;
    let (flag, tag, enables) = (true, 0, 255);
    Packet {
        data: 1,
        offset: 0,
        target,
        source: 0,
        trace: 0,
        kind,
        flag,
        tag,
        enables,
    }
}

/// Returns the credits of what comes out, 20 cycles later.
fn give_back(engine: &mut Engine, cycle: u64, out: &mut Vec<Output>) -> u64 {
    let mut packets = 0;
    for output in out.drain(..) {
        match output {
            Output::Link { port, channel, .. } => {
                packets += 1;
                engine.input(cycle + 20, Input::LinkCredit { port, channel });
            }
            Output::Host(packet) => {
                packets += 1;
                engine.input(cycle + 20, Input::HostCredit(packet.channel()));
            }
            _ => {}
        }
    }
    packets
}

fn one_packet(criterion: &mut Criterion) {
    let machine = Machine::builtin("sme-prototype").expect("it is built in");
    let node = &sme_sim::families::sme::of(&machine)
        .expect("an SME cluster")
        .node;
    let store = |target: u64| {
        let address = node.global_base + target * node.shared_bytes;
        Input::Host(HtPacket::Write {
            address,
            data: 1,
            enables: 255,
            coherent: true,
            trace: 0,
        })
    };
    let arriving = |target| Input::Link {
        port: 1,
        channel: 0,
        packet: packet(target),
    };
    let ways = [
        ("hop, 4 steps", arriving(63)),
        ("link to host, 5 steps", arriving(NODE)),
        ("host to link, 7 steps", store(63)),
        ("loopback, 6 steps", store(NODE.into())),
    ];
    let mut group = criterion.benchmark_group("engine/one packet");
    for (way, input) in ways {
        let mut engine = Engine::with_design(&design(), NODE);
        let (mut cycle, mut out) = (0, Vec::new());
        group.bench_function(way, |bencher| {
            bencher.iter(|| {
                engine.input(cycle, input);
                while let Some(next) = engine.next_cycle() {
                    cycle = next;
                    engine.step(cycle, &mut out);
                    give_back(&mut engine, cycle, &mut out);
                }
                cycle += 30;
            });
        });
    }
    group.finish();
}

fn full_links(criterion: &mut Criterion) {
    const CYCLES: u64 = 6_000;
    let mut group = criterion.benchmark_group("engine/four links, 6000 cycles");
    group.throughput(Throughput::Elements(CYCLES));
    group.bench_function("straight on", |bencher| {
        let mut engine = Engine::with_design(&design(), NODE);
        let (mut start, mut out) = (0, Vec::new());
        let mut room = [4u32; 4];
        bencher.iter(|| {
            let mut packets = 0;
            for cycle in start..start + CYCLES {
                // Along the row and the column of node 27, each link to the opposite one.
                for (port, target) in [24, 31, 3, 59]
                    .into_iter()
                    .enumerate()
                    .filter(|_| cycle % 6 == 0)
                {
                    if room[port] > 0 {
                        room[port] -= 1;
                        engine.input(
                            cycle,
                            Input::Link {
                                port: port as u16,
                                channel: 0,
                                packet: packet(target),
                            },
                        );
                    }
                }
                if engine.next_cycle().is_some_and(|next| next <= cycle) {
                    engine.step(cycle, &mut out);
                }
                for output in &out {
                    if let Output::LinkCredit { port, .. } = output {
                        room[usize::from(*port)] += 1;
                    }
                }
                packets += give_back(&mut engine, cycle, &mut out);
            }
            start += CYCLES;
            packets
        });
    });
    group.finish();
}

fn route(criterion: &mut Criterion) {
    let topology: Topology = "torus:60x60x60".parse().expect("a topology");
    let router = Router::new(&topology);
    let here = router.here(1234);
    let mut target = 0;
    criterion.bench_function("fabric/route", |bencher| {
        bencher.iter(|| {
            target = (target + 97) % (1 << 17);
            router.step(black_box(here), 1, 0, target)
        });
    });
}

criterion_group!(benches, one_packet, full_links, route);
criterion_main!(benches);
