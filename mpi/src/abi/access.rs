//! Accesses to windows, and the requests of those that have one.

use super::arguments::{Arguments, Given};
use super::rank::{Ended, Failure, SUCCESS};
use super::request::Pending;
use super::server::Server;
use super::window::Got;
use crate::buffer::Buffer;
use crate::channel::Channel;
use crate::datatype::{Class, Combiner, Datatype};
use crate::error::ErrorClass;
use crate::op::Op;
use crate::rank::{PROC_NULL, Request, Target};

/// The target of an access with its number.
struct RankTarget {
    rank: u32,
    target: Target,
    /// Whether it has no elements.
    is_empty: bool,
}

impl RankTarget {
    /// Begins at the rank of the target, and ends at the displacement.
    fn at(a: &mut Arguments<'_>) -> Result<Self, Failure> {
        let (rank, displacement) = (a.peer()?, a.number());
        let displacement = match rank {
            PROC_NULL => 0,
            _ => u64::try_from(displacement).map_err(|_| {
                let text = format!("target_disp: {displacement} is negative");
                Failure::new(ErrorClass::Disp, text)
            })?,
        };
        Ok(Self {
            rank,
            target: Target::at(rank, displacement),
            is_empty: false,
        })
    }

    /// `count` elements there.
    fn of(self, count: i64, datatype: &Datatype) -> Self {
        Self {
            rank: self.rank,
            target: self.target.with(count, datatype),
            is_empty: count == 0,
        }
    }

    /// The same; a count and a datatype follow.
    fn with_shape(a: &mut Arguments<'_>) -> Result<Self, Failure> {
        let place = Self::at(a)?;
        let count = a.count()?;
        let datatype = a.committed_of(count)?;
        Ok(place.of(count, &datatype))
    }

    /// The operation of an accumulate, which follows: none where there is nothing to combine.
    fn op(&self, a: &mut Arguments<'_>) -> Result<Op, Failure> {
        let op = a.op()?;
        Ok(if self.is_empty { Op::NoOp } else { op })
    }
}

impl<'m, C: Channel> Server<'m, C> {
    /// The calls that access other ranks' memory.
    pub(super) async fn accesses(&mut self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name.trim_start_matches('R') {
            "Put" | "put" => {
                let (origin, place) = (a.buffer()?, RankTarget::with_shape(a)?);
                let handle = self.accessed(a, place.rank)?;
                let window = &self.window(handle)?.window;
                window.put(origin.buffer(), &place.target).await?;
                self.gets_nothing(a, handle)
            }
            "Accumulate" | "accumulate" => {
                let (origin, place) = (a.buffer()?, RankTarget::with_shape(a)?);
                let op = place.op(a)?;
                let handle = self.accessed(a, place.rank)?;
                let window = &self.window(handle)?.window;
                let origin = origin.buffer();
                window.accumulate(origin, &place.target, &op).await?;
                self.gets_nothing(a, handle)
            }
            "Get" | "get" => {
                let (result, place) = (a.buffer()?, RankTarget::with_shape(a)?);
                let handle = self.accessed(a, place.rank)?;
                let window = &self.window(handle)?.window;
                let request = window.get(result.room(), &place.target).await?;
                self.gets(a, (handle, place.rank), request)
            }
            "Get_accumulate" | "get_accumulate" => {
                let needs_origin = needs_operand(&a.op_at(10)?);
                let origin = match needs_origin {
                    true => Some(a.buffer()?),
                    false => {
                        a.no_buffer();
                        None
                    }
                };
                let (result, place) = (a.buffer()?, RankTarget::with_shape(a)?);
                self.fetches(a, origin, result, place).await
            }
            "Fetch_and_op" => {
                let needs_origin = needs_operand(&a.op_at(5)?);
                let (origin, result, datatype) = (a.address(), a.address(), a.committed()?);
                let one = |address| Given::new(a.rank, address, 1, &datatype);
                let (origin, result) = (needs_origin.then(|| one(origin)), one(result));
                let place = RankTarget::at(a)?.of(1, &datatype);
                self.fetches(a, origin, result, place).await
            }
            "Compare_and_swap" => {
                let [new, compared, result] = [a.address(), a.address(), a.address()];
                let datatype = a.committed()?;
                check_comparable(&datatype)?;
                let one = |address| Given::new(a.rank, address, 1, &datatype);
                let mut both = one(compared).buffer().packed()?;
                both.extend(one(new).buffer().packed()?);
                let both = Buffer::new(&both, 0, 2, &datatype);
                let place = RankTarget::at(a)?.of(1, &datatype);
                let handle = self.accessed(a, place.rank)?;
                let window = &self.window(handle)?.window;
                let room = one(result).room();
                let request = window
                    .compare_and_swap_any(both, room, &place.target)
                    .await?;
                self.gets(a, (handle, place.rank), request)
            }
            _ => self.rank.of_window(a),
        }
    }

    /// The accumulates that get what was there before, from the operation on.
    async fn fetches(
        &mut self,
        a: &mut Arguments<'_>,
        origin: Option<Given>,
        result: Given,
        place: RankTarget,
    ) -> Ended {
        let op = place.op(a)?;
        let handle = self.accessed(a, place.rank)?;
        let window = &self.window(handle)?.window;
        let nothing = result.clone().with_count(0);
        let origin = origin.unwrap_or(nothing).buffer();
        let room = result.room();
        let request = window
            .get_accumulate(origin, room, &place.target, &op)
            .await?;
        self.gets(a, (handle, place.rank), request)
    }

    /// The window that is to be accessed. An access that has a request is done when that is over,
    /// and leaves as soon as it may.
    fn accessed(&self, a: &mut Arguments<'_>, rank: u32) -> Result<u64, Failure> {
        let handle = a.window()?;
        if has_request(a) && rank != PROC_NULL {
            self.window(handle)?.window.hasten(Some(rank))?;
        }
        Ok(handle)
    }

    /// Ends a call whose access gets nothing: it is over here.
    fn gets_nothing(&mut self, a: &mut Arguments<'_>, handle: u64) -> Ended {
        if !has_request(a) {
            return SUCCESS;
        }
        let request = self.window(handle)?.window.over();
        let at = a.address();
        self.begun(a, at, Pending::Call(request))
    }

    /// Ends a call whose access gets something, for which its request is waited for: by the
    /// program, or by the next synchronization of the window.
    fn gets(
        &mut self,
        a: &mut Arguments<'_>,
        (handle, rank): (u64, u32),
        request: Request<'m, 'static, C>,
    ) -> Ended {
        let got = match has_request(a) {
            true => {
                let at = a.address();
                let request = self.begins_request(a, at, Pending::Call(request))?;
                Got::OfProgram(request)
            }
            false => Got::Here(request),
        };
        if rank == PROC_NULL {
            return SUCCESS;
        }
        let mut gets = std::mem::take(&mut self.window_mut(handle)?.gets);
        if gets.len().is_power_of_two() {
            // The program may have waited for all of its own, and never synchronize.
            gets.retain(|(_, got)| match got {
                Got::Here(_) => true,
                Got::OfProgram(request) => self.requests.contains_key(request),
            });
        }
        gets.push((rank, got));
        self.window_mut(handle)?.gets = gets;
        SUCCESS
    }
}

/// Returns whether the call gives a request.
fn has_request(a: &Arguments<'_>) -> bool {
    a.call.name.starts_with('R')
}

/// Returns whether an operation has an operand of the origin.
fn needs_operand(op: &Op) -> bool {
    !matches!(op, Op::NoOp)
}

/// Checks that values of a datatype can be compared and swapped (MPI-4.1, Sec. 12.3.4).
fn check_comparable(datatype: &Datatype) -> Result<(), Failure> {
    let class = match datatype.combiner() {
        Combiner::Named(basic) => Some(basic.class()),
        Combiner::F90Integer => Some(Class::Integer),
        _ => None,
    };
    match class {
        Some(Class::Integer | Class::Logical | Class::Byte | Class::MultiLanguage) => Ok(()),
        _ => Err(Failure::new(
            ErrorClass::Type,
            "only integers, logical values and bytes are compared and swapped",
        )),
    }
}
