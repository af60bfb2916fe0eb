//! Reads the Verilog that rust-hdl writes for a block's logic: names, numbers, slices, operators.

use std::collections::BTreeMap;

use super::Named;

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// Its bits, the lowest first, as many as it is wide.
    Number(Vec<bool>),
    Name(String),
    /// One bit.
    Bit(String, Box<Expression>),
    /// The lowest bit, and how many.
    Slice(String, usize, usize),
    Unary(Unary, Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
}

/// An operator of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    All,
    Any,
    Parity,
}

/// An operator of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Times,
    Plus,
    Minus,
    Left,
    Right,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    Unequal,
    And,
    Xor,
    Or,
    AndAlso,
    OrElse,
}

/// All of them, the tightest first: sign, and how tightly.
const OPERATORS: [(Operator, &str, u8); 16] = [
    (Operator::Times, "*", 10),
    (Operator::Plus, "+", 9),
    (Operator::Minus, "-", 9),
    (Operator::Left, "<<", 8),
    (Operator::Right, ">>", 8),
    (Operator::Less, "<", 7),
    (Operator::LessEqual, "<=", 7),
    (Operator::Greater, ">", 7),
    (Operator::GreaterEqual, ">=", 7),
    (Operator::Equal, "==", 6),
    (Operator::Unequal, "!=", 6),
    (Operator::And, "&", 5),
    (Operator::Xor, "^", 4),
    (Operator::Or, "|", 3),
    (Operator::AndAlso, "&&", 2),
    (Operator::OrElse, "||", 1),
];

impl Operator {
    pub fn sign(self) -> &'static str {
        let found = OPERATORS.iter().find(|(operator, ..)| *operator == self);
        found.map_or("", |(_, sign, _)| sign)
    }

    /// Returns whether the result is one bit, for all operands.
    pub fn is_test(self) -> bool {
        use Operator::*;
        matches!(
            self,
            Less | LessEqual | Greater | GreaterEqual | Equal | Unequal | AndAlso | OrElse
        )
    }

    pub fn is_associative(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Xor)
    }
}

impl Unary {
    pub fn sign(self) -> &'static str {
        match self {
            Self::Not => "~",
            Self::Minus => "-",
            Self::All => "&",
            Self::Any => "|",
            Self::Parity => "^",
        }
    }
}

/// The largest number of a bit.
const MOST: usize = 0xffff;

impl Expression {
    /// A small number, or what is made of such: the places of bits and slices.
    pub fn number(&self) -> Option<usize> {
        let small = |value: &usize| *value <= MOST;
        match self {
            Self::Number(bits) => {
                let ones = bits.iter().enumerate().filter(|(_, bit)| **bit);
                let places = ones.map(|(place, _)| (place < 16).then(|| 1 << place));
                places.sum::<Option<usize>>().filter(small)
            }
            Self::Binary(operator, first, second) => {
                let (first, second) = (first.number()?, second.number()?);
                match operator {
                    Operator::Times => Some(first * second).filter(small),
                    Operator::Plus => Some(first + second).filter(small),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns whether its bits may come from several operands, each in a place of its own.
    pub fn is_put_together(&self) -> bool {
        matches!(
            self,
            Self::Binary(Operator::Or | Operator::Left | Operator::Right, ..)
        )
    }

    /// Recognizes what rust-hdl writes for `x` with bit `k` replaced by `b`:
    /// `x & ~(1 << k) | (b << k)`.
    pub fn replacement(&self) -> Option<(&Self, usize, &Self)> {
        let Self::Binary(Operator::Or, kept, put) = self else {
            return None;
        };
        let (Self::Binary(Operator::And, rest, hole), Self::Binary(Operator::Left, bit, at)) =
            (&**kept, &**put)
        else {
            return None;
        };
        let Self::Unary(Unary::Not, hole) = &**hole else {
            return None;
        };
        let Self::Binary(Operator::Left, one, hole_at) = &**hole else {
            return None;
        };
        let at = at.number()?;
        (one.number() == Some(1) && hole_at.number() == Some(at)).then_some((&**rest, at, &**bit))
    }
}

/// Reads the widths of a module's names from its declarations.
pub(super) fn declared_names(body: &[String]) -> BTreeMap<String, Named> {
    let mut names = BTreeMap::new();
    for line in body {
        let code = line.trim().trim_end_matches(';');
        if let Some(constant) = code.strip_prefix("localparam ") {
            if let Some((name, value)) = constant.split_once(" = ")
                && let Some(Expression::Number(bits)) = expression(value)
            {
                names.insert(name.to_owned(), Named::Constant(bits));
            }
            continue;
        }
        let kinds = [
            "input wire ",
            "output wire ",
            "output reg ",
            "wire ",
            "reg ",
        ];
        let Some(rest) = kinds.iter().find_map(|kind| code.strip_prefix(kind)) else {
            continue;
        };
        let rest = rest
            .split_once(" = ")
            .map_or(rest, |(declared, _)| declared);
        let (range, name) = match rest.split_once("] ") {
            Some((range, name)) => (Some(range.trim_start_matches('[')), name),
            None => (None, rest),
        };
        let width = match range {
            None => Some(1),
            Some(range) => range
                .strip_suffix(":0")
                .and_then(|last| last.parse::<usize>().ok())
                .map(|last| last + 1),
        };
        // A memory, or several names at once, are nothing that the logic reads.
        let is_one = name.chars().all(crate::netlist::is_word);
        match width {
            Some(width) if is_one => names.insert(name.to_owned(), Named::Signal(width)),
            _ => None,
        };
    }
    names
}

/// The expression that `text` is, if it is one of those that rust-hdl writes.
pub(super) fn expression(text: &str) -> Option<Expression> {
    let mut reader = Reader { rest: text.trim() };
    let read = reader.binary(1)?;
    reader.rest.is_empty().then_some(read)
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    /// Operators that bind at least as tightly as `least`.
    fn binary(&mut self, least: u8) -> Option<Expression> {
        let mut first = self.operand()?;
        while let Some((operator, sign, binds)) = self.operator() {
            if binds < least {
                break;
            }
            self.rest = self.rest[sign.len()..].trim_start();
            let second = self.binary(binds + 1)?;
            first = Expression::Binary(operator, Box::new(first), Box::new(second));
        }
        Some(first)
    }

    /// The operator that comes next: the longest that fits, and not the middle of a slice.
    fn operator(&self) -> Option<(Operator, &'static str, u8)> {
        if self.rest.starts_with("+:") {
            return None;
        }
        let fitting = OPERATORS
            .iter()
            .filter(|(_, sign, _)| self.rest.starts_with(sign));
        fitting.max_by_key(|(_, sign, _)| sign.len()).copied()
    }

    fn operand(&mut self) -> Option<Expression> {
        let unary = match self.rest.chars().next()? {
            '~' => Some(Unary::Not),
            '-' => Some(Unary::Minus),
            '&' => Some(Unary::All),
            '|' => Some(Unary::Any),
            '^' => Some(Unary::Parity),
            _ => None,
        };
        if let Some(unary) = unary {
            self.rest = self.rest[1..].trim_start();
            return Some(Expression::Unary(unary, Box::new(self.operand()?)));
        }
        if self.skips("(") {
            let inner = self.binary(1)?;
            return self.skips(")").then_some(inner);
        }
        let word = self.word();
        if word.is_empty() {
            return None;
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number(word);
        }
        if !self.skips("[") {
            return Some(Expression::Name(word.to_owned()));
        }
        let first = self.binary(1)?;
        let selected = if self.skips("+:") {
            let width = self.binary(1)?.number()?;
            Expression::Slice(word.to_owned(), first.number()?, width)
        } else if self.skips(":") {
            let (last, lowest) = (first.number()?, self.binary(1)?.number()?);
            let width = (last + 1).checked_sub(lowest)?;
            Expression::Slice(word.to_owned(), lowest, width)
        } else {
            Expression::Bit(word.to_owned(), Box::new(first))
        };
        self.skips("]").then_some(selected)
    }

    /// The number that begins with `word`: `12`, `5'h1f`, or `5'b11111`.
    fn number(&mut self, word: &str) -> Option<Expression> {
        let value: usize = word.parse().ok()?;
        if !self.rest.starts_with('\'') {
            // Thirty-two bits, if nothing is said.
            let bits = (0..32).map(|place| value >> place & 1 == 1).collect();
            return (value <= i32::MAX as usize).then_some(Expression::Number(bits));
        }
        let bits_of_digit = match self.rest.get(..2)? {
            "'h" => 4,
            "'b" => 1,
            _ => return None,
        };
        self.rest = &self.rest[2..];
        let digits = self.word();
        let mut bits = Vec::new();
        for digit in digits.chars().rev() {
            let digit = digit.to_digit(1 << bits_of_digit)?;
            bits.extend((0..bits_of_digit).map(|place| digit >> place & 1 == 1));
        }
        bits.resize(value.min(MOST), false);
        Some(Expression::Number(bits))
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest;
        let end = rest.find(|c| !crate::netlist::is_word(c));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        self.rest = after.trim_start();
        word
    }

    fn skips(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }
}
