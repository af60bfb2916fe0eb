//! Operations of reductions, those of the program's included.

use std::sync::{Arc, OnceLock};

use super::arguments::{Arguments, Given};
use super::collective::check_apart;
use super::objects::{Kind, OpObject, no_such};
use super::rank::{Ended, Failure, Rank, SUCCESS};
use crate::datatype::{Datatype, pack};
use crate::error::ErrorClass;
use crate::op::Op;

impl Rank {
    /// The calls about operations.
    pub(super) fn operations(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Op_create" => {
                let (function, is_commutative, at) = (a.address(), a.flag(), a.address());
                let proxy: Arc<OnceLock<u64>> = Arc::default();
                let (rank, its_proxy) = (Arc::downgrade(self), Arc::clone(&proxy));
                let combine = move |earlier: &[u8], into: &mut [u8], datatype: &Datatype| {
                    // If the process has ended its result is of no interest.
                    if let Some(rank) = rank.upgrade() {
                        let both = (function, its_proxy.get().copied());
                        let _ = rank.combines(both, (earlier, into), datatype);
                    }
                };
                let op = Op::user(is_commutative, Arc::new(combine));
                let handle = a.new_handle(Kind::Op);
                let is_predefined = false;
                let object = OpObject {
                    op,
                    is_predefined,
                    proxy,
                };
                self.objects.lock().ops.insert(handle, object);
                a.put_handle(at, handle)?;
            }
            "Op_free" => {
                let at = a.address();
                let handle = a.handle_at(at)?;
                let mut objects = self.objects.lock();
                let found = objects.ops.get(&handle);
                let found = found.ok_or_else(|| no_such(ErrorClass::Op, "operation", handle))?;
                if found.is_predefined {
                    let text = "op: a predefined one is not freed";
                    return Err(Failure::new(ErrorClass::Op, text));
                }
                objects.ops.remove(&handle);
                drop(objects);
                a.put_null(at, "OP_NULL")?;
            }
            "Op_commutative" => {
                let (op, out) = (a.op()?, a.out());
                a.put(out, op.is_commutative().into())?;
            }
            "Reduce_local" => {
                let (from, into) = (a.address(), a.address());
                let (count, datatype, op) = (a.count()?, a.committed()?, a.op()?);
                let [from, into] =
                    [from, into].map(|address| Given::new(self, address, count, &datatype));
                if from.is_in_place() || into.is_in_place() {
                    return Err(Failure::new(ErrorClass::Buffer, "a buffer is MPI_IN_PLACE"));
                }
                check_apart(&from, &into)?;
                let earlier = from.buffer().packed()?;
                let mut result = into.buffer().packed()?;
                op.combine(&earlier, &mut result, &datatype)?;
                into.room().unpack(&result)?;
            }
            _ => return self.unsupported(a),
        }
        SUCCESS
    }

    /// Lets a function of the program's combine packed data, laid out in its memory as it expects;
    /// by its proxy, if it has one.
    fn combines(
        self: &Arc<Self>,
        (function, proxy): (u64, Option<u64>),
        (earlier, into): (&[u8], &mut [u8]),
        datatype: &Datatype,
    ) -> Result<(), Failure> {
        let size = datatype.size().max(1) as usize;
        let count = (into.len() / size) as i64;
        let Some((low, high)) = datatype.span(count)? else {
            return Ok(());
        };
        let bytes = (high - low) as u64;
        let room = self.allocate(2 * bytes + 2 * ALIGNMENT)?;
        let first = room.next_multiple_of(ALIGNMENT);
        let second = (first + bytes).next_multiple_of(ALIGNMENT);
        let origin = |begin: u64| begin.wrapping_sub(low as u64);
        let spread = |packed: &[u8], begin| -> Result<(), Failure> {
            let mut memory = vec![0; bytes as usize];
            pack::unpack(packed, &mut memory, (-low) as usize, count, datatype)?;
            self.write(begin, &memory)
        };
        spread(earlier, first)?;
        spread(into, second)?;
        let handle = self.objects.lock().handle_of_type(datatype);
        let handle = handle.unwrap_or_else(|| self.interface.handle("DATATYPE_NULL"));
        let (earlier, combined, number) = (origin(first), origin(second), count as u64);
        match proxy {
            Some(proxy) => self.invoke(proxy, &[earlier, combined, number, handle, function])?,
            None => {
                let at = self.gives(&[number, handle]);
                self.invoke(function, &[earlier, combined, at, at + 8])?
            }
        };
        let memory = self.read(second, bytes as usize)?;
        let mut packed = Vec::with_capacity(into.len());
        pack::pack(&memory, (-low) as usize, count, datatype, &mut packed)?;
        let combined = packed.len().min(into.len());
        into[..combined].copy_from_slice(&packed[..combined]);
        self.free(room)?;
        Ok(())
    }
}

/// The alignment of values of any type.
const ALIGNMENT: u64 = 16;
