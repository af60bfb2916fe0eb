//! A litmus test, and the state in which a run of it ends.
//!
//! Made by [`super::parse`](super::parse()), shown again in the same format by `Display`. Threads
//! and locations are numbered from 0, locations in the order in which the file names them.

use std::fmt;

use super::condition::{Condition, Observable};

/// A register of the processor under one of its names. One thread uses one name of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register {
    number: u8,
    wide: bool,
}

/// Names of the registers' lower halves and of the whole.
const REGISTERS: [(&str, &str); 16] = [
    ("EAX", "RAX"),
    ("EBX", "RBX"),
    ("ECX", "RCX"),
    ("EDX", "RDX"),
    ("ESI", "RSI"),
    ("EDI", "RDI"),
    ("EBP", "RBP"),
    ("ESP", "RSP"),
    ("R8D", "R8"),
    ("R9D", "R9"),
    ("R10D", "R10"),
    ("R11D", "R11"),
    ("R12D", "R12"),
    ("R13D", "R13"),
    ("R14D", "R14"),
    ("R15D", "R15"),
];

impl Register {
    /// The number of registers of a thread.
    pub const COUNT: usize = REGISTERS.len();

    /// The register called `name`, in capitals.
    pub fn named(name: &str) -> Option<Self> {
        let known = |&(lower, whole): &(&str, &str)| name == lower || name == whole;
        let number = REGISTERS.iter().position(known)?;
        Some(Self {
            number: number as u8,
            wide: name == REGISTERS[number].1,
        })
    }

    /// Returns the number of the register, below [`Self::COUNT`].
    pub fn number(self) -> usize {
        self.number.into()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let (lower, whole) = REGISTERS[self.number()];
        if self.wide { whole } else { lower }
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The source of an instruction's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A value in the instruction itself.
    Immediate(i32),
    /// From a register.
    Register(Register),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Immediate(value) => write!(f, "${value}"),
            Self::Register(register) => register.fmt(f),
        }
    }
}

/// An instruction of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// `MOV EAX,[x]`
    Load {
        /// The destination of the value.
        to: Register,
        /// The location's number.
        from: usize,
    },
    /// `MOV [x],$1` or `MOV [x],EAX`
    Store {
        /// The location's number.
        to: usize,
        /// The value stored.
        value: Source,
    },
    /// `MOV EAX,$1` or `MOV EAX,EBX`
    Move {
        /// The destination of the value.
        to: Register,
        /// The value moved there.
        value: Source,
    },
    /// `MFENCE`
    Fence,
}

/// A litmus test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// The text between quotes below the name.
    pub doc: Option<String>,
    /// The lines `Key=value`.
    pub info: Vec<(String, String)>,
    /// The locations' names and their values at the beginning.
    pub locations: Vec<(String, i32)>,
    /// The registers that hold something else than 0 at the beginning, of each thread.
    pub registers: Vec<Vec<(Register, i32)>>,
    /// The threads' instructions.
    pub threads: Vec<Vec<Instruction>>,
    /// Observables shown of a final state besides those of the condition.
    pub shown: Vec<Observable>,
    /// The question the test asks.
    pub condition: Condition,
}

impl Test {
    /// The state before the first instruction.
    pub fn initial_state(&self) -> FinalState {
        let mut registers = vec![[0; Register::COUNT]; self.threads.len()];
        for (thread, initial) in registers.iter_mut().zip(&self.registers) {
            for &(register, value) in initial {
                thread[register.number()] = value;
            }
        }
        FinalState {
            registers,
            memory: self.locations.iter().map(|&(_, value)| value).collect(),
        }
    }

    /// Returns the observables shown of a final state: registers by thread, then locations, each
    /// once.
    pub fn observed(&self) -> Vec<Observable> {
        let mut all = self.shown.clone();
        self.condition
            .proposition
            .for_each_observable(&mut |what| all.push(what));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the name of `what`: `0:EAX`, `[x]`.
    pub fn name_of(&self, what: Observable) -> String {
        match what {
            Observable::Register(thread, register) => format!("{thread}:{register}"),
            Observable::Location(number) => format!("[{}]", self.location(number)),
        }
    }

    /// The condition as litmus7 shows it.
    pub fn condition_text(&self) -> String {
        self.condition.text(&|what| self.name_of(what))
    }

    fn location(&self, number: usize) -> &str {
        self.locations.get(number).map_or("?", |(name, _)| name)
    }

    fn instruction_text(&self, instruction: Instruction) -> String {
        match instruction {
            Instruction::Load { to, from } => format!("MOV {to},[{}]", self.location(from)),
            Instruction::Store { to, value } => format!("MOV [{}],{value}", self.location(to)),
            Instruction::Move { to, value } => format!("MOV {to},{value}"),
            Instruction::Fence => "MFENCE".to_owned(),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "X86 {}", self.name)?;
        if let Some(doc) = &self.doc {
            writeln!(f, "\"{doc}\"")?;
        }
        for (key, value) in &self.info {
            writeln!(f, "{key}={value}")?;
        }
        write!(f, "{{")?;
        for (name, value) in &self.locations {
            write!(f, " {name}={value};")?;
        }
        for (thread, registers) in self.registers.iter().enumerate() {
            for (register, value) in registers {
                write!(f, " {thread}:{register}={value};")?;
            }
        }
        writeln!(f, " }}")?;
        let columns: Vec<Vec<String>> = self
            .threads
            .iter()
            .enumerate()
            .map(|(number, thread)| {
                let text = |&instruction| self.instruction_text(instruction);
                let instructions = thread.iter().map(text);
                [format!("P{number}")]
                    .into_iter()
                    .chain(instructions)
                    .collect()
            })
            .collect();
        let widths: Vec<usize> = columns
            .iter()
            .map(|column| column.iter().map(String::len).max().unwrap_or(0))
            .collect();
        // A row without instructions says that there are none.
        let rows = columns.iter().map(Vec::len).max().unwrap_or(0).max(2);
        for row in 0..rows {
            let cells: Vec<String> = columns
                .iter()
                .zip(&widths)
                .map(|(column, &width)| {
                    let cell = column.get(row).map_or("", String::as_str);
                    format!(" {cell:width$} ")
                })
                .collect();
            writeln!(f, "{};", cells.join("|"))?;
        }
        if !self.shown.is_empty() {
            let shown: Vec<String> = self
                .shown
                .iter()
                .map(|&what| match what {
                    Observable::Register(..) => self.name_of(what),
                    Observable::Location(number) => self.location(number).to_owned(),
                })
                .collect();
            writeln!(f, "locations [{};]", shown.join("; "))?;
        }
        writeln!(f, "{}", self.condition_text())
    }
}

/// The state at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FinalState {
    /// Each thread's registers, by number.
    pub registers: Vec<[i32; Register::COUNT]>,
    /// The locations' values.
    pub memory: Vec<i32>,
}

impl FinalState {
    /// The value of `what`; 0 of what is not there.
    pub fn value(&self, what: Observable) -> i32 {
        let value = match what {
            Observable::Register(thread, register) => self
                .registers
                .get(thread)
                .and_then(|registers| registers.get(register.number())),
            Observable::Location(number) => self.memory.get(number),
        };
        value.copied().unwrap_or(0)
    }
}
