//! Reads a litmus test: `X86 NAME`, a quoted text, `Key=value` lines, the initial state between
//! braces, a column of instructions for each thread, the final condition. Other instructions of
//! herd7 and litmus7 than loads, stores and MFENCE are refused, with its line and column.
//!
//! Nothing in a file makes it take long or much memory: the file, the threads, their instructions,
//! the locations and the depth of a condition have limits.

use std::collections::HashMap;

use thiserror::Error;

use super::condition::Observable;
use super::scanner::{Mark, Scanner, shown};
use super::test::{Instruction, Register, Source, Test};

/// The longest file, in bytes.
pub const MOST_BYTES: usize = 1 << 20;
/// The most threads.
pub const MOST_THREADS: usize = 64;
/// The most instructions of all threads together.
pub const MOST_INSTRUCTIONS: usize = 4096;
/// The most locations.
pub const MOST_LOCATIONS: usize = 256;
/// The most operators of a condition that stand within each other.
pub const MOST_DEPTH: usize = 64;

/// The reason why a text is no litmus test, or none of this subset.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The mistake, and what would be right.
    pub reason: String,
}

const INSTRUCTIONS: &str = "MOV [x],$1; MOV [x],EAX; MOV EAX,[x]; MOV EAX,$1; MOV EAX,EBX; MFENCE";

/// Reads the test that `text` holds.
///
/// # Errors
/// [`ParseError`] at the first thing that is not of the subset.
pub fn parse(text: &str) -> Result<Test, ParseError> {
    let scanner = Scanner::new(text);
    if text.len() > MOST_BYTES {
        let reason = format!("the file has {} bytes; at most {MOST_BYTES}", text.len());
        return Err(scanner.mark().error(reason));
    }
    Parser {
        scanner,
        numbers: HashMap::new(),
        locations: Vec::new(),
        initialized: HashMap::new(),
        registers: Vec::new(),
    }
    .test()
}

/// A register that the initial state names before the threads are known.
type InitialRegister = ((usize, Register), (i32, Mark));

/// The quoted text, and keys with their values.
type Description = (Option<String>, Vec<(String, String)>);

/// Reads one text from its beginning to its end.
pub(super) struct Parser<'t> {
    pub(super) scanner: Scanner<'t>,
    /// Locations by name.
    numbers: HashMap<&'t str, usize>,
    locations: Vec<(String, i32)>,
    /// The locations that the initial state has given, with their values.
    initialized: HashMap<usize, i32>,
    /// By which name each thread calls its registers.
    registers: Vec<[Option<Register>; Register::COUNT]>,
}

impl<'t> Parser<'t> {
    fn test(mut self) -> Result<Test, ParseError> {
        let name = self.header()?;
        let (doc, info) = self.description()?;
        let initial = self.initial_state()?;
        let threads = self.threads()?;
        let mut registers = vec![Vec::new(); threads.len()];
        for ((thread, register), (value, mark)) in initial {
            self.check_register(thread, register, mark)?;
            if value != 0 {
                registers[thread].push((register, value));
            }
        }
        registers
            .iter_mut()
            .for_each(|thread| thread.sort_unstable());
        let shown = if self.keyword("locations")? {
            self.shown()?
        } else {
            Vec::new()
        };
        let condition = self.condition()?;
        self.scanner.take(";")?;
        self.scanner.skip()?;
        if self.scanner.peek().is_some() {
            return Err(self.scanner.unexpected("the end of the file"));
        }
        Ok(Test {
            name,
            doc,
            info,
            locations: self.locations,
            registers,
            threads,
            shown,
            condition,
        })
    }

    fn header(&mut self) -> Result<String, ParseError> {
        self.scanner.skip()?;
        let mark = self.scanner.mark();
        let architecture = self
            .scanner
            .take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        match architecture {
            "X86" => {}
            "" => return Err(self.scanner.unexpected("`X86` and the test's name")),
            other => {
                return Err(mark.error(format!(
                    "tests for {} are not supported: only those that begin with `X86`",
                    shown(other)
                )));
            }
        }
        self.scanner.skip_in_line();
        let part_of_name = |c: char| {
            c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-' | '+' | '[' | ']' | ':')
        };
        let name = self.scanner.take_while(part_of_name);
        if name.is_empty() {
            return Err(self.scanner.unexpected("the test's name"));
        }
        self.scanner.skip_in_line();
        // The name of the test in a paper.
        if self.scanner.take_if("(") {
            self.scanner.take_while(|c| c != ')' && c != '\n');
            self.scanner.expect(")", "behind the other name")?;
            self.scanner.skip_in_line();
        }
        Ok(name.to_owned())
    }

    /// The quoted text, and the lines `Key=value`.
    fn description(&mut self) -> Result<Description, ParseError> {
        let mut doc = None;
        if self.scanner.take("\"")? {
            let begin = self.scanner.mark();
            doc = Some(self.scanner.take_while(|c| c != '"').to_owned());
            if !self.scanner.take_if("\"") {
                return Err(begin.error("this text does not end: `\"` is missing"));
            }
        }
        self.scanner.take(";")?;
        let mut info = Vec::new();
        loop {
            self.scanner.skip()?;
            if self.scanner.peek() == Some('{') {
                return Ok((doc, info));
            }
            let key = self.scanner.name();
            if key.is_empty() {
                let wanted = "`{` and the initial state, or a line `Key=value`,";
                return Err(self.scanner.unexpected(wanted));
            }
            self.scanner.skip_in_line();
            if !self.scanner.take_if("=") {
                return Err(self
                    .scanner
                    .unexpected(&format!("`=` behind {}", shown(key))));
            }
            let value = self.scanner.take_while(|c| c != '\n');
            info.push((key.to_owned(), value.trim().to_owned()));
        }
    }

    /// `{ x=0; 0:EAX=1; }`
    fn initial_state(&mut self) -> Result<Vec<InitialRegister>, ParseError> {
        self.scanner.expect("{", "before the initial state")?;
        let mut registers: HashMap<(usize, Register), (i32, Mark)> = HashMap::new();
        let mut order = Vec::new();
        loop {
            self.scanner.skip()?;
            if self.scanner.take_if("}") {
                break;
            }
            if self.scanner.take_if(";") {
                continue;
            }
            let mark = self.scanner.mark();
            let what = self.observable()?;
            let value = if self.scanner.take("=")? {
                self.value()?
            } else {
                0
            };
            let before = match what {
                Observable::Register(thread, register) => {
                    let before = registers.insert((thread, register), (value, mark));
                    if before.is_none() {
                        order.push((thread, register));
                    }
                    before.map(|(value, _)| value)
                }
                Observable::Location(number) => {
                    self.locations[number].1 = value;
                    self.initialized.insert(number, value)
                }
            };
            if before.is_some_and(|before| before != value) {
                return Err(mark.error("the initial state gives this two different values"));
            }
            self.scanner.skip()?;
            if !matches!(self.scanner.peek(), Some(';' | '}')) {
                return Err(self.scanner.unexpected("`;` or `}`"));
            }
        }
        Ok(order
            .into_iter()
            .filter_map(|key| Some((key, *registers.get(&key)?)))
            .collect())
    }

    /// ` P0 | P1 ;` and the rows below.
    fn threads(&mut self) -> Result<Vec<Vec<Instruction>>, ParseError> {
        let mut count = 0;
        loop {
            self.scanner.skip()?;
            let mark = self.scanner.mark();
            let name = self.scanner.name();
            if name.is_empty() {
                return Err(self.scanner.unexpected(&format!("`P{count}`")));
            }
            if name != format!("P{count}") {
                let reason = format!("`{}` stands where `P{count}` is expected", shown(name));
                return Err(mark.error(reason));
            }
            count += 1;
            if count > MOST_THREADS {
                return Err(mark.error(format!("more than {MOST_THREADS} threads")));
            }
            if self.scanner.take(";")? {
                break;
            }
            self.scanner
                .expect("|", "or `;` behind the thread's name")?;
        }
        self.registers = vec![[None; Register::COUNT]; count];
        let mut threads = vec![Vec::new(); count];
        let mut instructions = 0;
        while !self.is_at_the_end_of_the_program()? {
            for (number, thread) in threads.iter_mut().enumerate() {
                self.scanner.skip()?;
                let mark = self.scanner.mark();
                if !matches!(self.scanner.peek(), Some('|' | ';')) {
                    thread.push(self.instruction(number)?);
                    instructions += 1;
                }
                if instructions > MOST_INSTRUCTIONS {
                    return Err(mark.error(format!("more than {MOST_INSTRUCTIONS} instructions")));
                }
                let (end, place) = if number + 1 == count {
                    (
                        ";",
                        format!("behind the instruction of P{number}, the last thread"),
                    )
                } else {
                    ("|", format!("between P{number} and P{}", number + 1))
                };
                self.scanner.expect(end, &place)?;
            }
        }
        Ok(threads)
    }

    fn is_at_the_end_of_the_program(&mut self) -> Result<bool, ParseError> {
        self.scanner.skip()?;
        let mut ahead = self.scanner.clone();
        let ends = [
            "exists",
            "forall",
            "not",
            "locations",
            "filter",
            "final",
            "observed",
        ];
        Ok(match ahead.peek() {
            None | Some('~' | '(') => true,
            _ => ends.contains(&ahead.name()),
        })
    }

    fn instruction(&mut self, thread: usize) -> Result<Instruction, ParseError> {
        let mark = self.scanner.mark();
        match self.scanner.name() {
            "MFENCE" | "mfence" => return Ok(Instruction::Fence),
            "MOV" | "mov" => {}
            "" => return Err(self.scanner.unexpected("an instruction")),
            other => {
                self.scanner.skip()?;
                let what = if self.scanner.peek() == Some(':') {
                    "the label "
                } else {
                    ""
                };
                return Err(mark.error(format!(
                    "{what}{} is not supported: the subset is {INSTRUCTIONS}",
                    shown(other)
                )));
            }
        }
        self.scanner.skip()?;
        let mark = self.scanner.mark();
        if self.scanner.peek() == Some('[') {
            let to = self.location_in_brackets()?;
            self.scanner
                .expect(",", "between what MOV writes and what it reads")?;
            self.scanner.skip()?;
            let mark = self.scanner.mark();
            if self.scanner.peek() == Some('[') {
                let reason = "one of MOV's two operands must be a register or a number";
                return Err(mark.error(reason));
            }
            let value = self.source(thread)?;
            return Ok(Instruction::Store { to, value });
        }
        let Source::Register(to) = self.source(thread)? else {
            return Err(mark.error("MOV writes to a register or to [x], not to a number"));
        };
        self.scanner
            .expect(",", "between what MOV writes and what it reads")?;
        self.scanner.skip()?;
        if self.scanner.peek() == Some('[') {
            let from = self.location_in_brackets()?;
            return Ok(Instruction::Load { to, from });
        }
        let value = self.source(thread)?;
        Ok(Instruction::Move { to, value })
    }

    fn location_in_brackets(&mut self) -> Result<usize, ParseError> {
        self.scanner.expect("[", "before a location")?;
        self.scanner.skip()?;
        let mark = self.scanner.mark();
        let name = self.scanner.name();
        if name.is_empty() {
            return Err(self.scanner.unexpected("a location's name"));
        }
        let number = self.location(name, mark)?;
        self.scanner
            .expect("]", "behind the location: addresses are not computed")?;
        Ok(number)
    }

    fn location(&mut self, name: &'t str, mark: Mark) -> Result<usize, ParseError> {
        if Register::named(name).is_some() {
            let reason = format!("{name} is a register: addresses in registers are not supported");
            return Err(mark.error(reason));
        }
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        if self.locations.len() == MOST_LOCATIONS {
            return Err(mark.error(format!("more than {MOST_LOCATIONS} locations")));
        }
        self.locations.push((name.to_owned(), 0));
        self.numbers.insert(name, self.locations.len() - 1);
        Ok(self.locations.len() - 1)
    }

    fn register(&mut self) -> Result<Register, ParseError> {
        let mark = self.scanner.mark();
        let name = self.scanner.name();
        Register::named(name).ok_or_else(|| {
            let reason = match name {
                "" => return self.scanner.unexpected("a register"),
                _ if Register::named(&name.to_uppercase()).is_some() => {
                    format!("registers are written in capitals: {}", name.to_uppercase())
                }
                _ => format!("{} is no register such as EAX or RAX", shown(name)),
            };
            mark.error(reason)
        })
    }

    /// `$1` or `EAX`
    fn source(&mut self, thread: usize) -> Result<Source, ParseError> {
        self.scanner.skip()?;
        let mark = self.scanner.mark();
        match self.scanner.peek() {
            Some('$') => {
                self.scanner.next();
                self.scanner.number().map(Source::Immediate)
            }
            Some(c) if c == '-' || c.is_ascii_digit() => {
                self.scanner.number().map(Source::Immediate)
            }
            Some(c) if c.is_ascii_alphabetic() => {
                let register = self.register()?;
                self.check_register(thread, register, mark)?;
                Ok(Source::Register(register))
            }
            _ => Err(self
                .scanner
                .unexpected("a register, a number such as $1, or [x]")),
        }
    }

    /// A number where it is compared with or given; addresses are none.
    pub(super) fn value(&mut self) -> Result<i32, ParseError> {
        self.scanner.skip()?;
        match self.scanner.peek() {
            Some(c) if c.is_ascii_alphabetic() || matches!(c, '&' | '[' | '_' | '{') => Err(self
                .scanner
                .mark()
                .error("only whole numbers can stand here, no addresses and no other locations")),
            _ => self.scanner.number(),
        }
    }

    /// Returns the number of locations named so far.
    pub(super) fn locations(&self) -> usize {
        self.locations.len()
    }

    /// `0:EAX`, `x` or `[x]`
    pub(super) fn observable(&mut self) -> Result<Observable, ParseError> {
        self.scanner.skip()?;
        let mark = self.scanner.mark();
        let first = self.scanner.peek();
        if first == Some('[') {
            return self.location_in_brackets().map(Observable::Location);
        }
        let mut ahead = self.scanner.clone();
        let is_thread = match first {
            Some('P') => {
                ahead.next();
                let digits = ahead.take_while(|c| c.is_ascii_digit());
                !digits.is_empty() && ahead.take(":")?
            }
            Some(c) => c.is_ascii_digit(),
            None => false,
        };
        if is_thread {
            self.scanner.take_if("P");
            let thread = self.scanner.number()?;
            self.scanner
                .expect(":", "between a thread's number and a register")?;
            self.scanner.skip()?;
            let register = self.register()?;
            return match usize::try_from(thread) {
                Ok(thread) if thread < MOST_THREADS => Ok(Observable::Register(thread, register)),
                _ => Err(mark.error(format!("there is no thread {thread}"))),
            };
        }
        let name = self.scanner.name();
        if name.is_empty() {
            return Err(self
                .scanner
                .unexpected("a register such as 0:EAX or a location"));
        }
        let mut ahead = self.scanner.clone();
        ahead.skip_in_line();
        if matches!(ahead.peek(), Some(c) if c.is_ascii_alphabetic() || matches!(c, '*' | '[')) {
            let reason = format!(
                "`{}` is followed by `{}`: types and arrays are not supported",
                shown(name),
                ahead.peek().unwrap_or(' ')
            );
            return Err(mark.error(reason));
        }
        self.location(name, mark).map(Observable::Location)
    }

    /// Takes `word` if it comes next as a whole word.
    pub(super) fn keyword(&mut self, word: &str) -> Result<bool, ParseError> {
        self.scanner.skip()?;
        let mut ahead = self.scanner.clone();
        let comes = ahead.name() == word;
        if comes {
            self.scanner = ahead;
        }
        Ok(comes)
    }

    /// Returns whether `register` of `thread` exists, and is called by no other name there.
    pub(super) fn check_register(
        &mut self,
        thread: usize,
        register: Register,
        mark: Mark,
    ) -> Result<(), ParseError> {
        let Some(names) = self.registers.get_mut(thread) else {
            return Err(mark.error(format!("there is no thread P{thread}")));
        };
        let name = names[register.number()].get_or_insert(register);
        if *name == register {
            return Ok(());
        }
        Err(mark.error(format!(
            "{register} is {name}, as P{thread} calls it: use one name"
        )))
    }
}
