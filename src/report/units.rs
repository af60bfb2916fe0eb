//! The key of a field in words: `latency_mean_us` is `latency mean [µs]`. The unit is the
//! end of a key; this is the one place that knows the ends.
//!
//! Called by [`crate::cli::plot`] for the names of axes.

/// The ends of keys with what they are as units, longer ones before their own ends.
const UNITS: [(&str, &str); 21] = [
    ("cycles_per_byte", "cycles/B"),
    ("mb_per_s", "MB/s"),
    ("gb_per_s", "GB/s"),
    ("per_s", "1/s"),
    ("per_byte", "1/B"),
    ("ps", "ps"),
    ("ns", "ns"),
    ("us", "µs"),
    ("ms", "ms"),
    ("s", "s"),
    ("bits", "bit"),
    ("bytes", "B"),
    ("mb", "MB"),
    ("percent", "%"),
    ("mhz", "MHz"),
    ("gflops", "GFLOP/s"),
    ("cycles", "cycles"),
    ("w", "W"),
    ("v", "V"),
    ("j", "J"),
    ("nj", "nJ"),
];

/// The words of a key, and its unit where it ends with one.
pub fn words(key: &str) -> (String, Option<&'static str>) {
    let unit = UNITS.iter().find_map(|(end, unit)| {
        let rest = key.strip_suffix(end)?;
        let is_whole = rest.is_empty() && end.contains("per");
        (is_whole || rest.ends_with('_') && rest.len() > 1).then_some((rest, *unit))
    });
    let (rest, unit) = match unit {
        Some((rest, unit)) => (rest, Some(unit)),
        None => (key, None),
    };
    (rest.trim_end_matches('_').replace('_', " "), unit)
}

/// "words [unit]", as an axis is labelled.
pub fn label(words: &str, unit: Option<&str>) -> String {
    match unit {
        Some(unit) if words.is_empty() => unit.to_owned(),
        Some(unit) => format!("{words} [{unit}]"),
        None => words.to_owned(),
    }
}

/// Whether the unit is one of time.
pub fn is_time(unit: &str) -> bool {
    ["ps", "ns", "µs", "ms", "s"].contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_labels() {
        for (key, expected) in [
            ("latency_ns", "latency [ns]"),
            ("latency_mean_us", "latency mean [µs]"),
            ("gb_per_s", "GB/s"),
            ("bandwidth_mb_per_s", "bandwidth [MB/s]"),
            ("events_per_s", "events [1/s]"),
            ("k_cycles_per_byte", "k [cycles/B]"),
            ("share_percent", "share [%]"),
            ("size_bytes", "size [B]"),
            ("memory_mb", "memory [MB]"),
            ("bytes", "bytes"),
            ("cores_per_node", "cores per node"),
            ("nodes", "nodes"),
            ("s", "s"),
            ("_s", " s"),
            ("", ""),
        ] {
            let (words, unit) = words(key);
            assert_eq!(label(&words, unit), expected, "{key}");
        }
    }
}
