//! Checks the credits of one wire: never a packet without one, never one without a packet.

use super::checker::Violation;

/// A wire with credits at an engine's border.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Host to engine.
    FromHost,
    /// Engine to host.
    ToHost,
    /// Into a link port.
    FromLink(u16),
    /// Out of a link port.
    ToLink(u16),
}

impl std::fmt::Display for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wire::FromHost => f.write_str("host to engine"),
            Wire::ToHost => f.write_str("engine to host"),
            Wire::FromLink(port) => write!(f, "link {port} in"),
            Wire::ToLink(port) => write!(f, "link {port} out"),
        }
    }
}

/// The credits of one wire.
#[derive(Clone, Debug)]
pub struct CreditChecker {
    wire: Wire,
    most: Vec<u32>,
    used: Vec<u32>,
}

impl CreditChecker {
    /// A wire whose receiver has `most` places for each channel.
    pub fn new(wire: Wire, most: &[u32]) -> Self {
        Self {
            wire,
            most: most.to_vec(),
            used: vec![0; most.len()],
        }
    }

    /// A packet is carried.
    ///
    /// # Errors
    /// If there is no place for it.
    pub fn packet(&mut self, channel: u8) -> Result<(), Violation> {
        let index = usize::from(channel);
        if self
            .used
            .get(index)
            .is_none_or(|used| *used >= self.most[index])
        {
            return Err(Violation::NoCredit {
                wire: self.wire,
                channel,
            });
        }
        self.used[index] += 1;
        Ok(())
    }

    /// A credit comes back.
    ///
    /// # Errors
    /// If all of them were back.
    pub fn credit(&mut self, channel: u8) -> Result<(), Violation> {
        match self.used.get_mut(usize::from(channel)) {
            Some(used) if *used > 0 => *used -= 1,
            _ => {
                return Err(Violation::TooManyCredits {
                    wire: self.wire,
                    channel,
                });
            }
        }
        Ok(())
    }

    /// Nothing is under way any more.
    ///
    /// # Errors
    /// If a credit is missing.
    pub fn finish(&self) -> Result<(), Violation> {
        match self.used.iter().position(|&used| used > 0) {
            Some(channel) => {
                let missing = self.used[channel];
                Err(Violation::CreditLost {
                    wire: self.wire,
                    channel: channel as u8,
                    missing,
                })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_misuse_a_credit_is_found() {
        let mut wire = CreditChecker::new(Wire::ToLink(3), &[1, 2]);
        assert_eq!(
            wire.credit(0),
            Err(Violation::TooManyCredits {
                wire: Wire::ToLink(3),
                channel: 0
            })
        );
        assert_eq!((wire.packet(1), wire.packet(1)), (Ok(()), Ok(())));
        assert_eq!(
            wire.packet(1),
            Err(Violation::NoCredit {
                wire: Wire::ToLink(3),
                channel: 1
            })
        );
        assert_eq!(
            wire.packet(2),
            Err(Violation::NoCredit {
                wire: Wire::ToLink(3),
                channel: 2
            })
        );
        assert_eq!(wire.credit(1), Ok(()));
        let lost = Violation::CreditLost {
            wire: Wire::ToLink(3),
            channel: 1,
            missing: 1,
        };
        assert_eq!(wire.finish(), Err(lost));
        assert_eq!(wire.credit(1), Ok(()));
        assert_eq!(wire.finish(), Ok(()));
    }
}
