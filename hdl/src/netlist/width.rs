//! Expressions whose operands are all as wide as what they make.
//!
//! rust-hdl writes every number with 32 bits and every slice by its offset and width, and leaves it
//! to Verilog to extend and to cut: `x = x + 32'h1` of five bits. That means the same as
//! `x = x + 5'h1`, but tools warn of it, and of what matters among a thousand such lines. Here each
//! statement of a module's logic is read, the bits that count are asked of each operand, by the
//! rules of Verilog-2001 (§4.4: an operand is as wide as the widest of its context), and the
//! statement is written anew. Text that this does not parse stays as it was. Called by
//! [`super::tidy`].

use std::collections::BTreeMap;

mod parse;

use parse::{Expression, Operator, Unary, declared_names, expression};

/// The meaning of a name.
#[derive(Clone, Debug)]
enum Named {
    /// A wire, variable or port of this many bits.
    Signal(usize),
    /// A constant; its bits, the lowest first.
    Constant(Vec<bool>),
}

impl Named {
    fn width(&self) -> usize {
        match self {
            Self::Signal(width) => *width,
            Self::Constant(bits) => bits.len(),
        }
    }
}

/// Rewrites the statements among the lines of a module.
pub(super) fn exact(body: &mut [String]) {
    let names = Names(declared_names(body));
    for line in body {
        let code = line.trim_start();
        if let Some(written) = names.statement(code) {
            let indent = &line[..line.len() - code.len()];
            *line = format!("{indent}{written}");
        }
    }
}

/// An expression as text, and how tightly it holds together.
struct Text {
    text: String,
    binds: Binds,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Binds {
    /// A name, a number, a concatenation.
    Whole,
    /// `~x`.
    Unary,
    /// `|x`, which is hard to read beside another bar.
    Reduction,
    Binary(Operator),
}

impl Text {
    fn whole(text: String) -> Self {
        let binds = Binds::Whole;
        Self { text, binds }
    }

    /// Returns the text as an operand of `operator`; the second one of those that count in order
    /// needs its brackets.
    fn beside(self, operator: Operator, is_second: bool) -> String {
        let bare = match self.binds {
            Binds::Whole | Binds::Unary => true,
            Binds::Reduction => false,
            Binds::Binary(own) => own == operator && (operator.is_associative() || !is_second),
        };
        self.bracketed(!bare)
    }

    fn below_unary(self) -> String {
        let bare = self.binds == Binds::Whole;
        self.bracketed(!bare)
    }

    fn bracketed(self, brackets: bool) -> String {
        if brackets {
            format!("({})", self.text)
        } else {
            self.text
        }
    }
}

/// The names of a module.
struct Names(BTreeMap<String, Named>);

impl Names {
    /// A statement, or the beginning of one, in other words.
    fn statement(&self, code: &str) -> Option<String> {
        for begin in ["if (", "end else if (", "else if ("] {
            if let Some(rest) = code.strip_prefix(begin) {
                let condition = expression(rest.strip_suffix(") begin")?)?;
                let width = self.width(&condition)?;
                let bits = self.bound(&condition, width)?.max(1);
                let condition = self.bits(&condition, bits, width)?.text;
                return Some(format!("{begin}{condition}) begin"));
            }
        }
        let (target, value) = code.strip_suffix(';')?.split_once(" = ")?;
        let (target, value) = (expression(target)?, expression(value)?);
        let (name, bits) = match &target {
            Expression::Name(name) => (name, self.0.get(name)?.width()),
            Expression::Bit(name, _) => (name, 1),
            Expression::Slice(name, _, bits) => (name, *bits),
            _ => return None,
        };
        let Named::Signal(all) = self.0.get(name)? else {
            return None;
        };
        let width = self.width(&value)?.max(bits);
        // A variable with one bit changed: only the bit is assigned.
        if let (Expression::Name(_), Some((rest, at, bit))) = (&target, value.replacement())
            && *rest == target
            && at < bits
            && *all > 1
            && self.bound(bit, width)? <= 1
        {
            let bit = self.bits(bit, 1, width)?.text;
            return Some(format!("{name}[{at}] = {bit};"));
        }
        let target = self.bits(&target, bits, bits)?.text;
        let value = self.bits(&value, bits, width)?.text;
        Some(format!("{target} = {value};"))
    }

    /// The width that an expression has by itself.
    fn width(&self, expression: &Expression) -> Option<usize> {
        Some(match expression {
            Expression::Number(bits) => bits.len(),
            Expression::Name(name) => self.0.get(name)?.width(),
            Expression::Bit(..) => 1,
            Expression::Slice(_, _, bits) => *bits,
            Expression::Unary(Unary::Not | Unary::Minus, operand) => self.width(operand)?,
            Expression::Unary(..) => 1,
            Expression::Binary(operator, first, second) => match operator {
                _ if operator.is_test() => 1,
                Operator::Left | Operator::Right => self.width(first)?,
                _ => self.width(first)?.max(self.width(second)?),
            },
        })
    }

    /// Returns the number of the lowest bits that can be ones, of an expression in a context of
    /// `width` bits.
    fn bound(&self, expression: &Expression, width: usize) -> Option<usize> {
        let bound = match expression {
            Expression::Number(bits) => length(bits),
            Expression::Name(name) => match self.0.get(name)? {
                Named::Signal(bits) => *bits,
                Named::Constant(bits) => length(bits),
            },
            Expression::Bit(..) => 1,
            Expression::Slice(_, _, bits) => *bits,
            Expression::Unary(Unary::Not | Unary::Minus, _) => width,
            Expression::Unary(..) => 1,
            Expression::Binary(operator, first, second) => {
                let of_first = || self.bound(first, width);
                let of_second = || self.bound(second, width);
                match operator {
                    _ if operator.is_test() => 1,
                    Operator::And => of_first()?.min(of_second()?),
                    Operator::Or | Operator::Xor => of_first()?.max(of_second()?),
                    Operator::Plus => of_first()?.max(of_second()?) + 1,
                    Operator::Left => match second.number() {
                        Some(places) => of_first()? + places,
                        None => width,
                    },
                    Operator::Right => match second.number() {
                        Some(places) => of_first()?.saturating_sub(places),
                        None => of_first()?,
                    },
                    _ => width,
                }
            }
        };
        Some(bound.min(width))
    }

    /// The `bits` lowest bits of an expression in a context of `width` bits: text that is `bits`
    /// wide.
    fn bits(&self, expression: &Expression, bits: usize, width: usize) -> Option<Text> {
        if let Some(value) = self.constant(expression) {
            return Some(match expression {
                Expression::Name(name) if value.len() == bits => Text::whole(name.clone()),
                _ => number(&value, bits),
            });
        }
        if expression.is_put_together()
            && let Some(pieces) = self.pieces(expression, 0, bits, width)
        {
            return Some(joined(pieces));
        }
        let (own, bound) = (
            self.width(expression)?,
            self.bound(expression, width)?.max(1),
        );
        if bound < bits && !self.fits(expression, bits) {
            let low = if own < bits && bound <= own && self.fits(expression, own) {
                own
            } else {
                bound
            };
            let text = self.bits(expression, low, width)?.text;
            return Some(Text::whole(format!("{{{}, {text}}}", zeros(bits - low))));
        }
        Some(match expression {
            Expression::Number(_) => return None,
            Expression::Name(name) => {
                let all = self.0.get(name)?.width();
                Text::whole(slice(name, all, 0, bits))
            }
            Expression::Bit(name, index) => match index.number() {
                Some(index) => Text::whole(format!("{name}[{index}]")),
                None => {
                    let own = self.width(index)?;
                    let index = self.bits(index, own, own)?.text;
                    Text::whole(format!("{name}[{index}]"))
                }
            },
            Expression::Slice(name, lowest, _) => {
                let all = self.0.get(name)?.width();
                Text::whole(slice(name, all, *lowest, bits))
            }
            Expression::Unary(unary @ (Unary::Not | Unary::Minus), operand) => {
                let operand = self.bits(operand, bits, width)?.below_unary();
                let text = format!("{}{operand}", unary.sign());
                let binds = Binds::Unary;
                Text { text, binds }
            }
            Expression::Unary(unary, operand) => {
                let own = self.width(operand)?;
                // Zeros above change what `&` says, and nothing else.
                let bits = if *unary == Unary::All || self.fits(operand, own) {
                    own
                } else {
                    self.bound(operand, own)?.max(1)
                };
                let operand = self.bits(operand, bits, own)?.below_unary();
                let text = format!("{}{operand}", unary.sign());
                let binds = Binds::Reduction;
                Text { text, binds }
            }
            Expression::Binary(operator, first, second) => {
                return self.binary(*operator, [first, second], bits, width);
            }
        })
    }

    fn binary(
        &self,
        operator: Operator,
        [first, second]: [&Expression; 2],
        bits: usize,
        width: usize,
    ) -> Option<Text> {
        let [first, second] = match operator {
            // By as many places as are known, they are pieces.
            Operator::Left | Operator::Right => return None,
            Operator::AndAlso | Operator::OrElse => {
                let of = |operand: &Expression| {
                    let own = self.width(operand)?;
                    self.bits(operand, own, own)
                };
                [of(first)?, of(second)?]
            }
            _ if operator.is_test() => {
                let width = self.width(first)?.max(self.width(second)?);
                let bound = self.bound(first, width)?.max(self.bound(second, width)?);
                let bits = bound.max(1);
                [
                    self.bits(first, bits, width)?,
                    self.bits(second, bits, width)?,
                ]
            }
            _ => {
                if operator == Operator::And {
                    // The bits that a mask of ones leaves are all that is asked for.
                    for (mask, other) in [(first, second), (second, first)] {
                        let is_one = |bits_of: Vec<bool>| {
                            bits_of.len() >= bits && bits_of[..bits].iter().all(|bit| *bit)
                        };
                        if matches!(mask, Expression::Number(_))
                            && self.constant(mask).is_some_and(is_one)
                        {
                            return self.bits(other, bits, width);
                        }
                    }
                }
                [
                    self.bits(first, bits, width)?,
                    self.bits(second, bits, width)?,
                ]
            }
        };
        let [first, second] = [first.beside(operator, false), second.beside(operator, true)];
        let text = format!("{first} {} {second}", operator.sign());
        let binds = Binds::Binary(operator);
        Some(Text { text, binds })
    }

    /// Returns whether all signals in an expression have `bits` bits, so that it needs no
    /// extension.
    fn fits(&self, expression: &Expression, bits: usize) -> bool {
        match expression {
            Expression::Unary(Unary::Not | Unary::Minus, operand) => self.fits(operand, bits),
            Expression::Binary(Operator::Left | Operator::Right, ..) => false,
            Expression::Binary(operator, first, second) if !operator.is_test() => {
                self.fits(first, bits) && self.fits(second, bits)
            }
            _ => match self.constant(expression) {
                Some(value) => length(&value) <= bits,
                None => self.width(expression) == Some(bits),
            },
        }
    }

    /// `bits` bits of an expression from `lowest` on, the highest piece first, where no two
    /// operands have a say in the same bit: single bits put into something, shifted operands, ored.
    fn pieces(
        &self,
        expression: &Expression,
        lowest: usize,
        bits: usize,
        width: usize,
    ) -> Option<Vec<Piece>> {
        if bits == 0 {
            return Some(Vec::new());
        }
        let end = lowest + bits;
        if let Some((rest, at, bit)) = expression.replacement()
            && self.bound(bit, width)? <= 1
        {
            if !(lowest..end).contains(&at) {
                return self.pieces(rest, lowest, bits, width);
            }
            let mut pieces = self.pieces(rest, at + 1, end - at - 1, width)?;
            pieces.push(Piece::of(1, self.bits(bit, 1, width)?.text));
            pieces.extend(self.pieces(rest, lowest, at - lowest, width)?);
            return Some(pieces);
        }
        if let Some(value) = self.constant(expression) {
            let from = value.get(lowest..).unwrap_or_default();
            let text = (length(from) > 0).then(|| number(from, bits).text);
            return Some(vec![Piece { bits, text }]);
        }
        match expression {
            Expression::Binary(Operator::Or, first, second) => {
                let of = |operand| self.pieces(operand, lowest, bits, width);
                return ored(of(first)?, of(second)?);
            }
            Expression::Binary(Operator::Left, first, places) => {
                let places = places.number()?.clamp(lowest, end);
                let zeros = Piece::zeros(places - lowest);
                let from = lowest.saturating_sub(places);
                // Bits shifted beyond the context are lost.
                let mut pieces = self.pieces(first, from, end - places, width)?;
                pieces.extend(zeros);
                return Some(pieces);
            }
            Expression::Binary(Operator::Right, first, places) => {
                let from = lowest + places.number()?;
                return match &**first {
                    Expression::Name(_) => self.pieces(first, from, bits, width),
                    _ => None,
                };
            }
            _ => (),
        }
        let all = self.bound(expression, width)?;
        let own = all.clamp(lowest, end) - lowest;
        let text = match expression {
            _ if own == 0 => None,
            Expression::Name(name) => Some(slice(name, all, lowest, own)),
            _ if lowest == 0 => Some(self.bits(expression, own, width)?.text),
            _ => return None,
        };
        let mut pieces: Vec<Piece> = Piece::zeros(bits - own).into_iter().collect();
        pieces.extend(text.map(|text| Piece::of(own, text)));
        Some(pieces)
    }

    /// The bits of a number or of a constant.
    fn constant(&self, expression: &Expression) -> Option<Vec<bool>> {
        match expression {
            Expression::Number(bits) => Some(bits.clone()),
            Expression::Name(name) => match self.0.get(name)? {
                Named::Constant(bits) => Some(bits.clone()),
                Named::Signal(_) => None,
            },
            _ => None,
        }
    }
}

/// The length of a number without its leading zeros.
fn length(bits: &[bool]) -> usize {
    bits.iter().rposition(|bit| *bit).map_or(0, |last| last + 1)
}

/// `bits` bits of `name`, which has `all`, from `lowest` on.
fn slice(name: &str, all: usize, lowest: usize, bits: usize) -> String {
    match (lowest, bits) {
        (0, bits) if bits == all => name.to_owned(),
        (at, 1) => format!("{name}[{at}]"),
        (lowest, bits) => format!("{name}[{}:{lowest}]", lowest + bits - 1),
    }
}

/// A number of `bits` bits, those of `value` the lowest.
fn number(value: &[bool], bits: usize) -> Text {
    let value = &value[..value.len().min(bits)];
    let digits: String = value
        .chunks(4)
        .rev()
        .filter_map(|digit| {
            let digit = (digit.iter().enumerate()).map(|(place, bit)| u32::from(*bit) << place);
            char::from_digit(digit.sum(), 16)
        })
        .collect();
    let digits = match digits.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    Text::whole(format!("{bits}'h{digits}"))
}

fn zeros(bits: usize) -> String {
    number(&[], bits).text
}

/// Some bits beside others.
struct Piece {
    bits: usize,
    /// None where they are zeros.
    text: Option<String>,
}

impl Piece {
    fn of(bits: usize, text: String) -> Self {
        let text = Some(text);
        Self { bits, text }
    }

    /// Makes a piece of that many zeros, if there are any.
    fn zeros(bits: usize) -> Option<Self> {
        (bits > 0).then_some(Self { bits, text: None })
    }
}

/// The same bits of two operands, ored; None where both have a say in one.
fn ored(first: Vec<Piece>, second: Vec<Piece>) -> Option<Vec<Piece>> {
    let mut rest = [first, second].map(|pieces| {
        let mut pieces = merged(pieces);
        pieces.reverse();
        pieces
    });
    let mut both = Vec::new();
    while let [Some(one), Some(other)] = rest.each_mut().map(Vec::pop) {
        // Takes the piece that decides, else the one with fewer zeros, and as many zeros of the
        // other.
        let has_say = [&one, &other].map(|piece| piece.text.is_some());
        let second_is_taken = match has_say {
            [true, true] => return None,
            [false, false] => other.bits < one.bits,
            [_, of_second] => of_second,
        };
        let (taken, mut zeros, of) = if second_is_taken {
            (other, one, 0)
        } else {
            (one, other, 1)
        };
        zeros.bits = zeros.bits.checked_sub(taken.bits)?;
        if zeros.bits > 0 {
            rest[of].push(zeros);
        }
        both.push(taken);
    }
    Some(both)
}

/// With zeros beside zeros as one piece.
fn merged(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut merged: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match merged.last_mut() {
            Some(last) if last.text.is_none() && piece.text.is_none() => last.bits += piece.bits,
            _ => merged.push(piece),
        }
    }
    merged
}

/// Pieces beside each other, the highest first.
fn joined(pieces: Vec<Piece>) -> Text {
    let text = |piece: Piece| piece.text.unwrap_or_else(|| zeros(piece.bits));
    let pieces: Vec<String> = merged(pieces).into_iter().map(text).collect();
    match <[String; 1]>::try_from(pieces) {
        Ok([piece]) => Text::whole(piece),
        Err(pieces) => Text::whole(format!("{{{}}}", pieces.join(", "))),
    }
}

#[cfg(test)]
mod tests;
