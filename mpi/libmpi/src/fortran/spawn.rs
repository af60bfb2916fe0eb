//! Calls that start processes: programs and their arguments are arrays of texts.

use super::text::Text;
use super::{give, number, place};
use crate::entries as c;

/// MPI_Comm_spawn and MPI_Comm_spawn_multiple, under these names.
macro_rules! spawns {
    ($one:ident $several:ident) => {
        /// MPI_Comm_spawn.
        #[unsafe(no_mangle)]
        pub extern "C" fn $one(
            command: usize,
            arguments: usize,
            most: usize,
            info: usize,
            root: usize,
            comm: usize,
            new: usize,
            codes: usize,
            error: usize,
            command_length: usize,
            argument_length: usize,
        ) {
            let (comm, root) = (number(comm), number(root));
            let is_root = is_root(comm, root);
            let command = Text::trimmed(command, if is_root { command_length } else { 0 });
            // The other ranks' arguments say nothing.
            let arguments = match is_root {
                true => List::until_blank(arguments, argument_length, argument_length),
                false => List::none(),
            };
            let (command, arguments) = (command.address(), arguments.address());
            let (most, info, codes) = (number(most), number(info), place(codes));
            let code = c::PMPI_Comm_spawn(command, arguments, most, info, root, comm, new, codes);
            give(error, code);
        }

        /// MPI_Comm_spawn_multiple.
        #[unsafe(no_mangle)]
        pub extern "C" fn $several(
            count: usize,
            commands: usize,
            arguments: usize,
            most: usize,
            infos: usize,
            root: usize,
            comm: usize,
            new: usize,
            codes: usize,
            error: usize,
            command_length: usize,
            argument_length: usize,
        ) {
            let (comm, root) = (number(comm), number(root));
            let count = match is_root(comm, root) {
                true => number(count),
                false => 0,
            };
            let places = 0..usize::try_from(count as i32).unwrap_or(0);
            let command = |i| Text::trimmed(commands + i * command_length, command_length);
            let programs = List::new(places.clone().map(command).collect());
            // The arguments of a program are a row of an array, which lies in memory by columns.
            let row = |i| {
                List::until_blank(
                    arguments + i * argument_length,
                    argument_length,
                    count * argument_length,
                )
            };
            let rows: Vec<List> = match place(arguments) {
                0 => Vec::new(),
                _ => places.map(row).collect(),
            };
            let addresses: Vec<usize> = rows.iter().map(List::address).collect();
            let addresses = match addresses.is_empty() {
                true => 0,
                false => addresses.as_ptr() as usize,
            };
            let (programs, codes) = (programs.address(), place(codes));
            let code = c::PMPI_Comm_spawn_multiple(
                count, programs, addresses, most, infos, root, comm, new, codes,
            );
            give(error, code);
        }
    };
}

spawns! { mpi_comm_spawn_ mpi_comm_spawn_multiple_ }
spawns! { pmpi_comm_spawn_ pmpi_comm_spawn_multiple_ }

/// Returns whether this rank is the root.
fn is_root(comm: usize, root: usize) -> bool {
    let mut rank = -1_i32;
    c::PMPI_Comm_rank(comm, (&raw mut rank) as usize);
    rank == root as i32
}

/// Texts as C has them: addresses, with a null pointer behind them.
#[derive(Debug)]
struct List {
    /// The texts at the addresses, which live as long as the list.
    _texts: Vec<Text>,
    addresses: Vec<usize>,
}

impl List {
    fn new(texts: Vec<Text>) -> Self {
        let addresses = texts.iter().map(Text::address).chain([0]).collect();
        Self {
            _texts: texts,
            addresses,
        }
    }

    /// No texts, and no list of them either.
    fn none() -> Self {
        Self {
            _texts: Vec::new(),
            addresses: Vec::new(),
        }
    }

    /// The texts from an address on, each so many bytes behind the one before it, until one is
    /// blank.
    fn until_blank(at: usize, length: usize, distance: usize) -> Self {
        if place(at) == 0 {
            return Self::none();
        }
        let texts = (0..).map(|i| Text::trimmed(at + i * distance, length));
        Self::new(texts.take_while(|text| !text.is_blank()).collect())
    }

    /// Its address for a call.
    fn address(&self) -> usize {
        match self.addresses.is_empty() {
            true => 0,
            false => self.addresses.as_ptr() as usize,
        }
    }
}
