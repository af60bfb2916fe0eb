//! Walks over the text of a litmus test, knows line and column, skips blanks and comments.
//!
//! Called by [`super::parse`](super::parse()). Lines and columns count from 1, columns in
//! characters.

use super::parse::ParseError;

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Mark {
    /// `reason`, found here.
    pub(super) fn error(self, reason: impl Into<String>) -> ParseError {
        ParseError {
            line: self.line,
            column: self.column,
            reason: reason.into(),
        }
    }
}

/// The part of a text that is still to be read.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'t> {
    rest: &'t str,
    mark: Mark,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            rest: text,
            mark: Mark { line: 1, column: 1 },
        }
    }

    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.rest = &self.rest[character.len_utf8()..];
        if character == '\n' {
            self.mark.line += 1;
            self.mark.column = 1;
        } else {
            self.mark.column += 1;
        }
        Some(character)
    }

    /// Takes characters as long as they are `wanted`.
    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let text = self.rest;
        while self.peek().is_some_and(&wanted) {
            self.next();
        }
        &text[..text.len() - self.rest.len()]
    }

    /// Skips what separates words on one line.
    pub(super) fn skip_in_line(&mut self) {
        self.take_while(|c| matches!(c, ' ' | '\t' | '\r'));
    }

    /// Skips white space and comments, `(* *)`, which may stand within each other.
    pub(super) fn skip(&mut self) -> Result<(), ParseError> {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest.starts_with("(*") {
                return Ok(());
            }
            let begin = self.mark;
            let mut open = 0u32;
            loop {
                if self.take_if("(*") {
                    open += 1;
                } else if self.take_if("*)") {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                } else if self.next().is_none() {
                    return Err(begin.error("this comment does not end: `*)` is missing"));
                }
            }
        }
    }

    /// Takes `text` if that comes next.
    pub(super) fn take_if(&mut self, text: &str) -> bool {
        let comes = self.rest.starts_with(text);
        if comes {
            text.chars().for_each(|_| {
                self.next();
            });
        }
        comes
    }

    /// Skips, and takes `text` if that comes next.
    pub(super) fn take(&mut self, text: &str) -> Result<bool, ParseError> {
        self.skip()?;
        Ok(self.take_if(text))
    }

    /// Skips, and takes `text`, which must come next; `place` says where that is.
    pub(super) fn expect(&mut self, text: &str, place: &str) -> Result<(), ParseError> {
        if self.take(text)? {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{text}` {place}")))
    }

    /// The name that comes next, or an empty one: letters, digits, `_`, `.`, `-`; no digit and no
    /// `-` in front.
    pub(super) fn name(&mut self) -> &'t str {
        if !self
            .peek()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == '.')
        {
            return "";
        }
        self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
    }

    /// Skips, and takes the whole number that comes next: decimal, or hexadecimal after `0x`.
    pub(super) fn number(&mut self) -> Result<i32, ParseError> {
        self.skip()?;
        let begin = self.mark;
        let negative = self.take_if("-");
        let digits = self.take_while(|c| c.is_ascii_alphanumeric());
        if digits.is_empty() {
            return Err(self.unexpected("a whole number"));
        }
        let (digits, radix) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(digits) => (digits, 16),
            None => (digits, 10),
        };
        let size =
            i64::from_str_radix(digits, radix).map(|size| if negative { -size } else { size });
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        match size.map(i32::try_from) {
            Ok(Ok(value)) => Ok(value),
            _ if is_number => Err(begin.error("this number does not fit into 32 bits with a sign")),
            _ => Err(begin.error(format!("`{}` is not a whole number", shown(digits)))),
        }
    }

    /// Makes the error that something other than `wanted` comes next.
    pub(super) fn unexpected(&self, wanted: &str) -> ParseError {
        let found = match self.peek() {
            None => "the file ends".to_owned(),
            Some('\n' | '\r') => "the line ends".to_owned(),
            Some(first) => {
                let mut ahead = self.clone();
                let word = ahead.take_while(|c| c.is_alphanumeric() || c == '_');
                let text = if word.is_empty() {
                    first.to_string()
                } else {
                    shown(word)
                };
                format!("there is `{}`", text.escape_debug())
            }
        };
        self.mark
            .error(format!("{wanted} is expected here, {found}"))
    }
}

/// `word`, cut to what a message can show.
pub(super) fn shown(word: &str) -> String {
    const LONGEST: usize = 40;
    let text: String = word.chars().take(LONGEST).collect();
    if text.len() < word.len() {
        text + "…"
    } else {
        text
    }
}
