//! Round-robin arbiter: who of several wins a cycle.
//!
//! Used wherever two packets want the same port. Its one register is the last winner, which comes
//! last in the next decision; so no requester waits for more than one packet of each other one.

/// The winner among the set bits of `want`: the first after `last`, cyclically. `want` must not be
/// zero.
pub(crate) fn round_robin(want: u32, last: u8) -> u8 {
    debug_assert_ne!(want, 0, "at least one requester must want the port");
    let after = want & (u32::MAX << last << 1);
    (if after == 0 { want } else { after }).trailing_zeros() as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_winner_is_the_first_after_the_last(want in 1u32.., last in 0u8..32) {
            let oracle = (1..=32).map(|step| (last + step) % 32).find(|&i| want >> i & 1 == 1);
            prop_assert_eq!(Some(round_robin(want, last)), oracle);
        }

        #[test]
        fn everybody_wins_within_one_round(want in 1u32.., start in 0u8..32) {
            let mut last = start;
            let mut winners = 0;
            for _ in 0..want.count_ones() {
                last = round_robin(want, last);
                winners |= 1 << last;
            }
            prop_assert_eq!(winners, want);
        }
    }
}
