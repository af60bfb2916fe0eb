//! The commands that daemons and managers take, and their results, in seven bits each.

/// A program that holds cores, by the number of the core on which it has begun: that core is its
/// own as long as it runs.
pub type Program = u8;

/// Cores of a chip, or nodes of a cluster, at most: programs and results fit into seven bits.
pub const MOST_CORES: u32 = 124;

/// With more cores than that a command does not say itself for which program it is, in seven bits.
pub(super) const MOST_IN_COMMAND: u32 = 56;

/// A command to a daemon, or to the manager of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Tell who holds the core.
    Query,
    /// End.
    Stop,
    /// Start the process that is to run here.
    Start,
    /// To a manager: a request that it answers at once.
    Ask,
    /// To a manager: answer when all that were started together have asked for this.
    Meet,
    /// To a manager: start the processes that the sender wants.
    StartAll,
    /// To a manager: the process of the sender's core has ended.
    Ended,
    /// To a manager, which does not answer: the process of the sender's core has died. The core is
    /// held until the manager releases it.
    Died,
    /// Kill the process that runs here, if one does.
    Kill,
    /// Hold the core for a program.
    Reserve(Program),
    /// Hold it for that program no longer.
    Release(Program),
    /// For the program that is beside the command: the clock of the core's tile is to have the
    /// divider that is beside it too, once all cores of the tile want that; 0 takes back what was
    /// wanted of clock and voltage.
    Tune,
    /// The same for the voltage of the core's island, in tenths of a volt.
    Supply,
    /// Lend the program that is beside the command at most so many segments of the core's memory as
    /// are beside it too, with 0 none. The segments lent, or with 0 those that could be, stand
    /// beside the result.
    Borrow,
    /// The program that is beside the command returns what it has borrowed, from the segment on
    /// that is beside it too, or with 0 all.
    Return,
}

/// The result of a command: the holder of the core, when it has been carried out; of
/// [`Command::Reserve`] none if that program has held it before, and of [`Command::Borrow`] the
/// program, or none if nothing was lent. Of a command to a clock or a
/// voltage that these do not allow it is [`Held::REFUSED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held(pub Option<Program>);

impl Held {
    /// A clock too fast for a voltage: the clock, or the voltage, is that with which it began.
    pub const REFUSED: Self = Self(Some(Program::MAX >> 1));
    const REFUSED_FLAG: u8 = 127;
}

impl Command {
    const RESERVE: u8 = 10;
    const RELEASE: u8 = Self::RESERVE + MOST_IN_COMMAND as u8;
    const LAST: u8 = Self::RELEASE + (MOST_IN_COMMAND as u8 - 1);
    const TUNE: u8 = Self::LAST + 1;
    const SUPPLY: u8 = Self::TUNE + 1;
    const RESERVE_BESIDE: u8 = Self::SUPPLY + 1;
    const RELEASE_BESIDE: u8 = Self::RESERVE_BESIDE + 1;
    const BORROW: u8 = Self::RELEASE_BESIDE + 1;
    const RETURN: u8 = Self::BORROW + 1;

    /// The program for which cores are held or released.
    pub(super) fn program(self) -> Option<Program> {
        match self {
            Self::Reserve(program) | Self::Release(program) => Some(program),
            _ => None,
        }
    }

    /// Encodes it as a flag's value; `beside` it is the program, if need be.
    pub(super) fn to_flag(self, beside: bool) -> u8 {
        match self {
            Self::Reserve(_) if beside => Self::RESERVE_BESIDE,
            Self::Release(_) if beside => Self::RELEASE_BESIDE,
            Self::Query => 1,
            Self::Stop => 2,
            Self::Start => 3,
            Self::Ask => 4,
            Self::Meet => 5,
            Self::StartAll => 6,
            Self::Ended => 7,
            Self::Died => 8,
            Self::Kill => 9,
            Self::Reserve(program) => Self::RESERVE + program,
            Self::Release(program) => Self::RELEASE + program,
            Self::Tune => Self::TUNE,
            Self::Supply => Self::SUPPLY,
            Self::Borrow => Self::BORROW,
            Self::Return => Self::RETURN,
        }
    }

    /// Its name in timelines, with the program that takes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Query => "daemon: Query",
            Self::Stop => "daemon: Stop",
            Self::Start => "daemon: Start",
            Self::Kill => "daemon: Kill",
            Self::Reserve(_) => "daemon: Reserve",
            Self::Release(_) => "daemon: Release",
            Self::Tune => "daemon: Tune",
            Self::Supply => "daemon: Supply",
            Self::Borrow => "daemon: Borrow",
            Self::Return => "daemon: Return",
            Self::Ask => "mpiexec: Ask",
            Self::Meet => "mpiexec: Meet",
            Self::StartAll => "mpiexec: StartAll",
            Self::Ended => "mpiexec: Ended",
            Self::Died => "mpiexec: Died",
        }
    }

    /// Returns whether it is for a manager.
    pub(super) fn is_for_manager(self) -> bool {
        matches!(
            self,
            Self::Ask | Self::Meet | Self::StartAll | Self::Ended | Self::Died
        )
    }

    /// Returns whether beside a flag of that value is a program.
    pub(super) fn is_beside(flag: u8) -> bool {
        flag == Self::RESERVE_BESIDE || flag == Self::RELEASE_BESIDE
    }

    /// The command that a flag's value is, with a program and one beside it, if it is one.
    pub(super) fn from_flag(flag: u8, beside: u8) -> Option<Self> {
        Some(match flag {
            Self::RESERVE_BESIDE => Self::Reserve(beside.checked_sub(1)?),
            Self::RELEASE_BESIDE => Self::Release(beside.checked_sub(1)?),
            1 => Self::Query,
            2 => Self::Stop,
            3 => Self::Start,
            4 => Self::Ask,
            5 => Self::Meet,
            6 => Self::StartAll,
            7 => Self::Ended,
            8 => Self::Died,
            9 => Self::Kill,
            Self::RESERVE..Self::RELEASE => Self::Reserve(flag - Self::RESERVE),
            Self::RELEASE..=Self::LAST => Self::Release(flag - Self::RELEASE),
            Self::TUNE => Self::Tune,
            Self::SUPPLY => Self::Supply,
            Self::BORROW => Self::Borrow,
            Self::RETURN => Self::Return,
            _ => return None,
        })
    }
}

impl Held {
    /// Encodes it as a flag's value.
    pub(super) fn to_flag(self) -> u8 {
        match self {
            Self::REFUSED => Self::REFUSED_FLAG,
            Self(holder) => holder.map_or(1, |program| 2 + program),
        }
    }

    /// The result that a flag's value is.
    pub(super) fn from_flag(flag: u8) -> Self {
        match flag {
            Self::REFUSED_FLAG => Self::REFUSED,
            _ => Self(flag.checked_sub(2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_as_they_were_written() {
        let last = MOST_IN_COMMAND as Program - 1;
        let mut all = vec![Command::Query, Command::Stop, Command::Start];
        all.extend([
            Command::Ask,
            Command::Meet,
            Command::StartAll,
            Command::Ended,
            Command::Died,
            Command::Kill,
            Command::Tune,
            Command::Supply,
            Command::Borrow,
            Command::Return,
        ]);
        all.extend((0..=last).map(Command::Reserve));
        all.extend((0..=last).map(Command::Release));
        let mut flags = Vec::new();
        for command in all {
            let flag = command.to_flag(false);
            assert_eq!(Command::from_flag(flag, 0), Some(command));
            flags.push(flag);
        }
        let many = MOST_CORES as Program - 1;
        for command in [Command::Reserve(many), Command::Release(many)] {
            let (flag, beside) = (command.to_flag(true), many + 1);
            assert!(Command::is_beside(flag) && beside < 128);
            assert_eq!(Command::from_flag(flag, beside), Some(command));
            assert_eq!(Command::from_flag(flag, 0), None);
            flags.push(flag);
        }
        flags.sort_unstable();
        flags.dedup();
        assert_eq!(flags.len(), 15 + 2 * MOST_IN_COMMAND as usize);
        assert!(flags.iter().all(|flag| (1..128).contains(flag)));
        assert_eq!(Command::from_flag(0, 0), None);
        for held in [Held(None), Held(Some(0)), Held(Some(many)), Held::REFUSED] {
            assert_eq!(Held::from_flag(held.to_flag()), held);
            assert!((1..128).contains(&held.to_flag()));
        }
    }
}
