//! Every message about an override (`--set`) that is wrong.

use sme_sim::machine::Machine;

#[test]
fn every_message_about_a_bad_override() {
    let machine = Machine::builtin("sme-prototype").expect("it is built in");
    for (key, value, message) in [
        (
            "engine.clock",
            "200",
            r#"--set engine.clock=200: engine.clock: "200" has no unit; write e.g. "200 MHz""#,
        ),
        (
            "engine.clok",
            "1 MHz",
            r#"--set engine.clok=1 MHz: unknown constant "engine.clok"; did you mean "engine.clock"?"#,
        ),
        (
            "engine.voltage",
            "1",
            r#"--set engine.voltage=1: unknown constant "engine.voltage"; [engine] has clock, ht_core, network_core and tags"#,
        ),
        (
            "clock",
            "1 MHz",
            r#"--set clock=1 MHz: unknown constant "clock"; it is written section.key, such as core.clock"#,
        ),
        (
            "",
            "",
            r#"--set =: unknown constant ""; it is written section.key, such as core.clock"#,
        ),
        (
            "node.cores_per_socket",
            "256",
            "--set node.cores_per_socket=256: node.cores_per_socket: 4 sockets of 256 cores are \
             1024 cores per node; at most 1023 are simulated",
        ),
        (
            "engine.tags",
            "64",
            r#"--set engine.tags=64: engine.tags: "64" is not allowed: it must be from 1 to 32"#,
        ),
        (
            "engine.tags",
            "",
            r#"--set engine.tags=: engine.tags: the value is empty; write e.g. "1""#,
        ),
        (
            "engine.tags",
            "four",
            r#"--set engine.tags=four: engine.tags: "four" does not begin with a number such as 12 or 1.5; write e.g. "1""#,
        ),
        (
            "engine.tags",
            "4 tags",
            r#"--set engine.tags=4 tags: engine.tags: "4" is a count: write it without the unit "tags""#,
        ),
        (
            "uncached.arbitration",
            "oldest",
            r#"--set uncached.arbitration=oldest: uncached.arbitration: unknown word "oldest"; it must be "random" or "fifo""#,
        ),
        // The line is the file's, but the override is to blame.
        (
            "node.private_memory",
            "1 TiB",
            "--set node.private_memory=1 TiB: node.global_base: 1 TiB lies inside a node's own RAM: 1 TiB private and 4 GiB shared",
        ),
        (
            "node.private_memory",
            "8589934593 B",
            "--set node.private_memory=8589934593 B: node.private_memory: 8589934593 B is not a multiple of 4 KiB: shared memory begins behind it",
        ),
        (
            "link.bandwidth",
            "3745 MB/s",
            "--set link.bandwidth=3745 MB/s: link.bandwidth: the engine passes one packet per cycle, 24 bytes at most: at 156 MHz no more than 3.744 GB/s on a link",
        ),
        (
            "engine.clock",
            "1\n2",
            r#"--set engine.clock=1\n2: engine.clock: unknown unit "2" in "1\n2"; a frequency is written in Hz, kHz, MHz or GHz"#,
        ),
    ] {
        assert_eq!(
            machine.with(&[(key, value)]).unwrap_err().to_string(),
            message
        );
    }
    let short_lines = [("cache.line", "32 B"), ("uncached.load_payload", "64 B")];
    let message = machine.with(&short_lines).unwrap_err().to_string();
    assert_eq!(
        message,
        "--set uncached.load_payload=64 B: uncached.load_payload: 64 B is more than a line: it must be 8 B to 32 B"
    );
    // The longest packet sets the limit of a link.
    let long_reads = [
        ("link.bandwidth", "3745 MB/s"),
        ("uncached.load_payload", "32 B"),
    ];
    assert!(machine.with(&long_reads).is_ok());
    let twice = [("engine.tags", "4"), ("engine.tags", "8")];
    let message = machine.with(&twice).unwrap_err().to_string();
    assert_eq!(message, "--set engine.tags=8: engine.tags is set twice");
}
