//! The call of a run that is to be explained: called by [`super::job`].

use std::cmp::Reverse;

use sme_sim::observe::calls::ThreadCall;

/// A choice among the calls of a run: without any of its parts, the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallChoice {
    /// Of this name alone; of all but MPI_Finalize without one, in which ranks wait for the end.
    pub name: Option<&'static str>,
    /// Of this rank alone.
    pub rank: Option<u32>,
    /// In the place of the longest, the call with this number among them, in the order of their
    /// begins; the first is 1.
    pub number: Option<u64>,
}

impl CallChoice {
    /// The call that it is, of `calls` in the order of their begins: of equally long ones the
    /// first. `None` if there is no such call.
    pub fn of(self, calls: &[(u32, ThreadCall)]) -> Option<(u32, ThreadCall)> {
        let is_one = |&&(rank, ended): &&(u32, ThreadCall)| {
            self.rank.is_none_or(|own| own == rank)
                && match self.name {
                    Some(name) => name == ended.call.name,
                    None => ended.call.name != "MPI_Finalize",
                }
        };
        let mut among = calls.iter().filter(is_one);
        let found = match self.number {
            Some(number) => among.nth(usize::try_from(number.checked_sub(1)?).ok()?),
            None => among.min_by_key(|(_, ended)| Reverse(ended.end.since(ended.begin))),
        };
        found.copied()
    }
}

#[cfg(test)]
mod tests {
    use sme_sim::parts::contract::Call;
    use sme_sim::time::Time;

    use super::*;

    #[test]
    fn the_longest_is_chosen_or_the_one_that_is_named() {
        let call = |rank, name, begin, end| {
            let (begin, end) = (Time::from_ns(begin), Time::from_ns(end));
            let call = Call::new(name, 8);
            let thread = 0;
            let ended = ThreadCall {
                call,
                thread,
                begin,
                end,
            };
            (rank, ended)
        };
        let calls = [
            call(0, "MPI_Send", 0, 5),
            call(1, "MPI_Recv", 1, 9),
            call(0, "MPI_Recv", 5, 12),
            call(1, "MPI_Recv", 10, 18),
            call(0, "MPI_Finalize", 12, 99),
        ];
        let chosen = |name, rank, number| {
            let choice = CallChoice { name, rank, number };
            let found = choice.of(&calls);
            found.and_then(|found| calls.iter().position(|call| *call == found))
        };
        assert_eq!(chosen(None, None, None), Some(1));
        assert_eq!(chosen(Some("MPI_Send"), None, None), Some(0));
        assert_eq!(chosen(Some("MPI_Recv"), Some(0), None), Some(2));
        assert_eq!(chosen(Some("MPI_Recv"), Some(1), Some(2)), Some(3));
        assert_eq!(chosen(Some("MPI_Recv"), None, Some(2)), Some(2));
        for number in [0, 3, u64::MAX] {
            assert_eq!(chosen(None, Some(0), Some(number)), None, "{number}");
        }
        assert_eq!(chosen(Some("MPI_Finalize"), None, None), Some(4));
        assert_eq!(chosen(Some("MPI_Scan"), None, None), None);
    }
}
