//! The ways of sending on a network on chip, and through registered buffers: what programs see of
//! them, and the commands that measure, tune and compare.

use std::sync::Arc;

use sme::messages::job::{self, Job, Library};
use sme::messages::pingpong::Way;
use sme_mpi::rank::{Source, Tag};
use sme_sim::machine::Machine;

use crate::command::{cell, sme_in, text};

/// A job of all clusters, and a subsystem's rank.
fn job(way: Way) -> Job {
    let machine = Arc::new(Machine::builtin("mppa256").unwrap());
    Job {
        has_io: true,
        modes: way.modes(),
        ..Job::new(machine, Library::Queues, 16)
    }
}

/// The jobs of each way on the networks on chip, and through registered buffers of two nodes.
fn jobs() -> Vec<(Way, Job)> {
    let cluster = Arc::new(Machine::builtin("sme-prototype").unwrap());
    let registered = Way::ALL.iter().filter(|way| way.is_of(Library::Registered));
    let registered = registered.map(|&way| {
        let modes = way.modes();
        let job = Job::new(Arc::clone(&cluster), Library::Registered, 17);
        (way, Job { modes, ..job })
    });
    let of_chip = Way::ALL.iter().map(|&way| (way, job(way)));
    of_chip.chain(registered).collect()
}

fn mpi(line: &str) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let output = sme_in(directory.path(), &format!("mpi {line}"));
    let said = |bytes: &[u8]| text(bytes).to_owned();
    (
        output.status.code(),
        said(&output.stdout),
        said(&output.stderr),
    )
}

fn said(line: &str) -> String {
    let (status, said, complaint) = mpi(line);
    assert_eq!(status, Some(0), "{line}: {complaint}");
    said
}

fn rows(line: &str) -> Vec<serde_json::Value> {
    let said = said(&format!("{line} --format json"));
    said.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Two ranks that send before they receive: copies and control messages let them, and where sends
/// wait for the receive the report names both.
#[test]
fn only_sends_that_do_not_wait_may_cross() {
    for (way, job) in jobs() {
        let ended = job.run_mpi(job::Observe::default(), |mpi, _| async move {
            let world = mpi.world();
            if mpi.local().rank() < 2 {
                let other = 1 - world.rank();
                let mut came = [0_u64; 100];
                world.send(&[u64::from(other); 100], other, 0).await?;
                let from = Source::Rank(other);
                world.receive(&mut came, from, Tag::Any).await?;
                assert_eq!(came, [u64::from(world.rank()); 100]);
            }
            mpi.finalize().await
        });
        match way {
            Way::Eager | Way::Lazy => drop(ended.unwrap()),
            Way::Normal | Way::Dma => {
                let Err(job::Error::Failure(failure)) = ended else {
                    panic!("{way}: no deadlock");
                };
                let report = failure.to_string();
                assert!(report.contains("in MPI_Send to rank 1"), "{report}");
                assert!(report.contains("in MPI_Send to rank 0"), "{report}");
            }
        }
    }
}

/// The subsystem's rank collects from any source, and answers each in the local communicator; in
/// the world it is not.
#[test]
fn the_rank_of_a_subsystem_is_outside_the_world() {
    for way in Way::ALL {
        let ended = job(*way).run_mpi(job::Observe::default(), |mpi, _| async move {
            let (world, local) = (mpi.world(), mpi.local());
            assert_eq!((world.size(), local.size()), (16, 17));
            let me = local.rank();
            if me == 16 {
                assert!(world.barrier().await.is_err());
                let mut sum = 0;
                for _ in 0..16 {
                    let mut came = [0_u64; 20];
                    let status = local.receive(&mut came, Source::Any, Tag::Is(3)).await?;
                    assert_eq!(came, [u64::from(status.source); 20]);
                    sum += came[0];
                }
                assert_eq!(sum, 120);
                for to in 0..16 {
                    local.send(&[sum; 30], to, 4).await?;
                }
            } else {
                assert_eq!(world.rank(), me);
                // More than fit are told of at once: the rest of the sends is pending.
                let mut answer = [0_u64; 30];
                let mut pending = local
                    .ireceive(&mut answer, Source::Rank(16), Tag::Is(4))
                    .await?;
                local.send(&[u64::from(me); 20], 16, 3).await?;
                pending.wait().await?;
                drop(pending);
                assert_eq!(answer, [120; 30]);
                let mut largest = [0_u64];
                let op = sme_mpi::op::Op::Max;
                world.allreduce(&[u64::from(me)], &mut largest, &op).await?;
                assert_eq!(largest, [15]);
            }
            mpi.finalize().await
        });
        drop(ended.unwrap());
    }
}

/// Messages that a receive has no room for, cancelled receives and sends without an address: all
/// end as they must, the tags and the memory for data being used again and again.
#[test]
fn tags_and_buffers_are_given_back() {
    for (_, job) in jobs() {
        // So many times 16 KiB are more than there is memory for.
        let rounds: u64 = match job.library {
            Library::Registered => 130,
            _ => 40,
        };
        let ended = job.run_mpi(job::Observe::default(), move |mpi, _| async move {
            let local = mpi.world();
            let (me, last) = (mpi.local().rank(), local.size() - 1);
            if me == 0 {
                for round in 0..rounds {
                    local.send(&vec![round; 2048], last, 0).await?;
                }
                local.send(&[7_u64; 64], last, 1).await?;
                local.send(&[8_u64; 25], last, 2).await?;
            } else if me == last {
                for round in 0..rounds {
                    let mut never = [0_u64; 500];
                    let mut cancelled = local
                        .ireceive(&mut never, Source::Rank(0), Tag::Is(9))
                        .await?;
                    let mut came = vec![0; 2048];
                    local
                        .receive(&mut came, Source::Rank(0), Tag::Is(0))
                        .await?;
                    assert_eq!(came, vec![round; 2048]);
                    cancelled.cancel()?;
                    assert!(cancelled.wait().await?.is_cancelled);
                }
                let mut short = [0_u64; 20];
                let truncated = local.receive(&mut short, Source::Rank(0), Tag::Is(1)).await;
                assert!(
                    truncated
                        .unwrap_err()
                        .to_string()
                        .contains("longer than 160 bytes")
                );
                assert_eq!(short, [7; 20]);
                // Of a longer buffer the rest stays as it was.
                let mut long = [1_u64; 100];
                let status = local
                    .receive(&mut long, Source::Rank(0), Tag::Is(2))
                    .await?;
                assert_eq!(status.bytes, 200);
                assert!(long[..25] == [8; 25] && long[25..] == [1; 75]);
            }
            mpi.finalize().await
        });
        drop(ended.unwrap());
    }
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let line = "pingpong --machine mppa256 --between io,cc15 --call send,isend \
                --mode normal,eager,lazy,dma --sizes 8,200,5000,20000 --rounds 3 --no-host";
    assert_eq!(said(line), said(&format!("{line} --workers 2")));
    let line = "pingpong --channel registered --ranks 32 --partner 31 --call send,isend \
                --mode normal,eager --sizes 8,200,5000,20000 --rounds 3 --no-host";
    assert_eq!(said(line), said(&format!("{line} --workers 2")));
}

/// Data that are stored to their place wait for no section to be read, and those that have none go
/// through the sections: 4 MiB have the bandwidth of these.
#[test]
fn registered_buffers_are_faster_where_there_is_room() {
    let bandwidth = |channel: &str, mode: &str, bytes: u64| {
        let line = format!(
            "pingpong --channel {channel} --mode {mode} --ranks 17 --partner 16 --sizes {bytes} \
             --rounds 1 --no-host"
        );
        rows(&line)[0]["bandwidth_mb_per_s"].as_f64().unwrap()
    };
    for bytes in [4096, 1 << 17] {
        let sections = bandwidth("sections", "normal", bytes);
        let registered = bandwidth("registered", "normal", bytes);
        assert!(registered > 1.15 * sections, "{registered} {sections}");
    }
    let long = 4 << 20;
    let ratio = bandwidth("registered", "normal", long) / bandwidth("sections", "normal", long);
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

/// A line for each size, and one for each direction.
#[test]
fn lines_of_cost_follow_the_sizes() {
    let line = "pingpong --machine mppa256 --between cc0,cc15 --mode normal,dma --sizes 8..4096*8 --no-host";
    let rows = rows(line);
    assert_eq!(rows.len(), 2 * 4 + 2 * 2);
    let (points, lines) = rows.split_at(8);
    assert!(points.iter().all(|row| row["send_us"].is_f64()));
    for line in lines {
        for key in ["k_cycles_per_byte", "h_cycles", "r2"] {
            assert!(line[key].is_f64(), "{line}");
        }
        assert!(line["r2"].as_f64().unwrap() > 0.99, "{line}");
        // Table IV is of messages that the core sends.
        let is_normal = line["mode"] == "normal";
        assert_eq!(line["published_h_cycles"].is_f64(), is_normal, "{line}");
    }
    assert_eq!(lines[1]["between"], "cc15,cc0");
    // Fewer sizes make no line, and csv has one kind of rows.
    let short = said("pingpong --machine mppa256 --sizes 8,16 --no-host --format csv");
    assert_eq!(short.lines().count(), 3);
    let (_, csv, below) = mpi("pingpong --machine mppa256 --sizes 8,16,24 --no-host --format csv");
    assert_eq!(csv.lines().count(), 4);
    assert!(
        below.starts_with("between,call,mode,k_cycles_per_byte"),
        "{below}"
    );
}

/// At each threshold another way is best than 8 bytes before it.
#[test]
fn tuned_thresholds_are_where_the_best_way_changes() {
    let tuned = rows("tune --machine mppa256 --most 16384 --rounds 2");
    let simulated: Vec<_> = tuned
        .iter()
        .filter(|row| row["by"] == "simulation" && row["aim"] == "latency")
        .collect();
    assert!(simulated.len() >= 3, "{tuned:?}");
    assert_eq!(simulated[0]["from_bytes"], 0);
    for pair in simulated.windows(2) {
        let from = pair[1]["from_bytes"].as_u64().unwrap();
        for (size, best) in [(from - 8, &pair[0]["mode"]), (from, &pair[1]["mode"])] {
            let line = format!(
                "pingpong --machine mppa256 --partner 15 --rounds 2 --sizes {size} \
                 --mode normal,eager,lazy,dma --no-host"
            );
            let rows = rows(&line);
            let latency = |row: &serde_json::Value| row["latency_us"].as_f64().unwrap();
            let least = rows.iter().min_by(|a, b| latency(a).total_cmp(&latency(b)));
            assert_eq!(&least.unwrap()["mode"], best, "{size} bytes: {rows:?}");
        }
    }
    for machine in ["scc", "sme-prototype"] {
        let line = format!("tune --machine {machine} --ranks 4 --most 1024 --rounds 1");
        let tuned = rows(&line);
        assert!(tuned.iter().all(|row| row["mode"] == "eager"), "{tuned:?}");
    }
}

/// The comparison has what the ping-pong and the barrier alone give.
#[test]
fn compared_figures_are_those_of_the_single_commands() {
    let compared = rows("compare --machines scc,mppa256 --ranks 4 --rounds 2");
    for (row, machine) in compared.iter().zip(["scc", "mppa256"]) {
        assert_eq!(row["machine"], machine);
        let channel = row["channel"].as_str().unwrap();
        let pingpong = said(&format!(
            "pingpong --machine {machine} --channel {channel} --ranks 4 --partner 3 --sizes 8 \
             --rounds 2 --no-host"
        ));
        let latency: f64 = cell(&pingpong, "latency_us").parse().unwrap();
        assert_eq!(row["latency_us"].as_f64(), Some(latency));
        let barrier = said(&format!(
            "collective barrier --machine {machine} --ranks 4 --rounds 2 --no-host"
        ));
        let latency: f64 = cell(&barrier, "latency_us").parse().unwrap();
        assert_eq!(row["barrier_us"].as_f64(), Some(latency));
    }
}

/// The longest eager message is every channel's parameter, and the other ones go with a mode.
#[test]
fn parameters_act() {
    let latency = |line: &str| -> f64 {
        let said = said(&format!("pingpong {line} --rounds 2 --no-host"));
        cell(&said, "latency_us").parse().unwrap()
    };
    let scc = "--machine scc --channel sccmpb --ranks 2 --sizes 512";
    assert!(latency(&format!("{scc} --eager 64")) > latency(scc));
    let lazy = "--machine mppa256 --ranks 2 --sizes 4096 --mode lazy";
    assert!(latency(&format!("{lazy} --lazy-buffer 1024")) != latency(lazy));
    let eager = "--machine mppa256 --ranks 2 --sizes 4096 --mode eager";
    assert!(latency(&format!("{eager} --credits 1")) > latency(eager));
}

#[test]
fn wrong_flags_are_refused() {
    for (line, says) in [
        (
            "pingpong --machine mppa256 --between cc0",
            "--between: cc0 is not two of",
        ),
        (
            "pingpong --machine mppa256 --between cc0,cc16",
            "there is no cc16",
        ),
        (
            "pingpong --machine mppa256 --between io,io",
            "io,io are the same",
        ),
        (
            "pingpong --machine mppa256 --between cc0,cc1,io",
            "is not two of",
        ),
        (
            "pingpong --machine mppa256 --between cc0,cc1 --ranks 4",
            "cannot be used with",
        ),
        (
            "pingpong --machine scc --between cc0,cc1",
            "ranks have numbers",
        ),
        (
            "pingpong --machine scc --channel sccmpb --mode dma",
            "has no mode dma",
        ),
        (
            "pingpong --machine scc --mode eager",
            "channel rcce has no mode eager",
        ),
        (
            "pingpong --machine scc --call isend",
            "rcce has no MPI calls",
        ),
        ("pingpong --machine mppa256 --mode fast", "--mode"),
        ("pingpong --machine mppa256 --call bsend", "--call"),
        (
            "pingpong --machine mppa256 --mode dma --eager 8",
            "--eager says nothing then",
        ),
        ("pingpong --machine mppa256 --eager much", "--eager"),
        ("pingpong --machine mppa256 --eager -1", "--eager"),
        (
            "pingpong --machine mppa256 --lazy-buffer 65537",
            "--lazy-buffer",
        ),
        ("pingpong --machine mppa256 --credits 0", "--credits"),
        (
            "pingpong --machine mppa256 --credits 256",
            "bytes of the node's memory are free",
        ),
        ("pingpong --machine scc --channel sccmpb --lazy 8", "--lazy"),
        ("hpl --machine scc --dma 8", "--dma"),
        ("hpl --machine scc --depth 2", "--depth"),
        (
            "tune --machine mppa256 --set memory.size=512KiB",
            "a rank's data end at byte",
        ),
        ("tune --machine mppa256 --most 63", "--most"),
        ("tune --machine mppa256 --most 1000001", "--most"),
        ("tune --machine mppa256 --partner 16", "--partner"),
        ("tune --machine scc --channel rcce", "rcce has no MPI calls"),
        ("tune --machine cxl-pool --channel chunks", "share a pool's"),
        ("compare --machines scc,nothing", "--machines"),
        ("compare --ranks 1", "--ranks"),
        ("compare --figures x -o x/compare.svg", "compare.svg"),
    ] {
        let (status, said, complaint) = mpi(line);
        assert_eq!(
            (status, said.as_str()),
            (Some(2), ""),
            "{line}: {complaint}"
        );
        assert!(complaint.contains(says), "{line}: {complaint}");
    }
}
