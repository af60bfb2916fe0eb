//! The end of a litmus test: `locations [x;]` and the final condition.
//!
//! Called by [`super::parse`](super::parse()).

use super::condition::{Condition, Observable, Proposition, Quantifier};
use super::parse::{MOST_DEPTH, ParseError, Parser};
use super::scanner::{Mark, shown};

impl Parser<'_> {
    /// `[x; 0:EAX;]`
    pub(super) fn shown(&mut self) -> Result<Vec<Observable>, ParseError> {
        self.scanner.expect("[", "behind `locations`")?;
        let mut shown = Vec::new();
        while !self.scanner.take("]")? {
            let what = self.known_observable()?;
            if !shown.contains(&what) {
                shown.push(what);
            }
            self.scanner.skip()?;
            if !self.scanner.take_if(";") && self.scanner.peek() != Some(']') {
                return Err(self.scanner.unexpected("`;` or `]`"));
            }
        }
        Ok(shown)
    }

    fn known_observable(&mut self) -> Result<Observable, ParseError> {
        self.scanner.skip()?;
        let mark = self.scanner.mark();
        let known = self.locations();
        let what = self.observable()?;
        match what {
            Observable::Register(thread, register) => {
                self.check_register(thread, register, mark)?;
            }
            // It would be 0 for ever: rather a slip of the pen than a question.
            Observable::Location(location) if location >= known => {
                let reason = "neither the initial state nor a thread names this location";
                return Err(mark.error(reason));
            }
            Observable::Location(_) => {}
        }
        Ok(what)
    }

    /// The final condition; none is `forall (true)`.
    pub(super) fn condition(&mut self) -> Result<Condition, ParseError> {
        self.scanner.skip()?;
        let mark = self.scanner.mark();
        if self.scanner.peek().is_none() {
            return Ok(Condition {
                quantifier: Quantifier::Forall,
                proposition: Proposition::all([]),
            });
        }
        let quantifier = if self.scanner.peek() == Some('(') || self.keyword("exists")? {
            Quantifier::Exists
        } else if self.keyword("forall")? {
            Quantifier::Forall
        } else if self.scanner.take_if("~") || self.keyword("not")? {
            if !self.keyword("exists")? {
                return Err(self.scanner.unexpected("`exists`"));
            }
            Quantifier::NotExists
        } else {
            let word = self.scanner.name();
            let reason = match word {
                "" => return Err(self.scanner.unexpected("`exists`, `~exists` or `forall`")),
                _ => format!(
                    "{} is not supported: the condition begins with exists, ~exists or forall",
                    shown(word)
                ),
            };
            return Err(mark.error(reason));
        };
        let proposition = self.any(0)?;
        Ok(Condition {
            quantifier,
            proposition,
        })
    }

    fn any(&mut self, depth: usize) -> Result<Proposition, ParseError> {
        let mut parts = vec![self.all(depth)?];
        while self.scanner.take("\\/")? {
            parts.push(self.all(depth)?);
        }
        Ok(Proposition::any(parts))
    }

    fn all(&mut self, depth: usize) -> Result<Proposition, ParseError> {
        let mut parts = vec![self.implication(depth)?];
        while self.scanner.take("/\\")? {
            parts.push(self.implication(depth)?);
        }
        Ok(Proposition::all(parts))
    }

    fn implication(&mut self, depth: usize) -> Result<Proposition, ParseError> {
        let mark = self.scanner.mark();
        let reason = self.simple(depth)?;
        if !self.scanner.take("=>")? {
            return Ok(reason);
        }
        if depth >= MOST_DEPTH {
            return Err(too_deep(mark));
        }
        let result = self.implication(depth + 1)?;
        Ok(Proposition::Implies(Box::new(reason), Box::new(result)))
    }

    fn simple(&mut self, depth: usize) -> Result<Proposition, ParseError> {
        self.scanner.skip()?;
        let mark = self.scanner.mark();
        if self.scanner.peek() == Some('(') {
            if depth >= MOST_DEPTH {
                return Err(too_deep(mark));
            }
            self.scanner.next();
            let inner = self.any(depth + 1)?;
            self.scanner.expect(")", "at the end of what `(` began")?;
            return Ok(inner);
        }
        if self.scanner.take_if("~") || self.keyword("not")? {
            if depth >= MOST_DEPTH {
                return Err(too_deep(mark));
            }
            let inner = self.simple(depth + 1)?;
            return Ok(Proposition::Not(Box::new(inner)));
        }
        if self.keyword("true")? {
            return Ok(Proposition::all([]));
        }
        if self.keyword("false")? {
            return Ok(Proposition::any([]));
        }
        let what = self.known_observable()?;
        if self.scanner.take("!=")? || self.scanner.take_if("<>") {
            let value = self.value()?;
            return Ok(Proposition::Not(Box::new(Proposition::Is(what, value))));
        }
        // `=>` would be an implication from something that is compared with nothing.
        if !self.scanner.take_if("==") {
            self.scanner.expect("=", "or `!=` and a number")?;
        }
        Ok(Proposition::Is(what, self.value()?))
    }
}

fn too_deep(mark: Mark) -> ParseError {
    mark.error(format!(
        "more than {MOST_DEPTH} operators within each other"
    ))
}
