//! Groups of ranks.

use super::arguments::Arguments;
use super::objects::no_such;
use super::rank::{Ended, Failure, Rank, SUCCESS};
use crate::error::ErrorClass;
use crate::group::{Comparison, Group, RankRange};
use crate::rank::PROC_NULL;

impl Rank {
    /// The calls about groups.
    pub(super) fn groups(&self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Group_size" => {
                let (group, out) = (a.group()?, a.out());
                a.put(out, group.size().into())?;
            }
            "Group_rank" => {
                let (group, out) = (a.group()?, a.out());
                let me = group.rank_of(self.job_rank());
                a.put_or_undefined(out, me.map(i64::from))?;
            }
            "Group_compare" => {
                let (one, other, out) = (a.group()?, a.group()?, a.out());
                let name = match one.compare(&other) {
                    Comparison::Ident => "IDENT",
                    Comparison::Similar => "SIMILAR",
                    Comparison::Unequal => "UNEQUAL",
                };
                a.put(out, a.interface().constant(name))?;
            }
            "Group_translate_ranks" => {
                let (group, count) = (a.group()?, a.length()?);
                let ranks = a.numbers(count)?;
                let (other, out) = (a.group()?, a.out());
                let no_process = a.interface().constant("PROC_NULL");
                let undefined = a.interface().constant("UNDEFINED");
                let translated = ranks.iter().map(|&rank| {
                    if rank == no_process {
                        return Ok(no_process);
                    }
                    let rank = u32::try_from(rank).unwrap_or(PROC_NULL);
                    let translated = group.translate_ranks(&[rank], &other)?;
                    let one = translated.first().copied().flatten();
                    Ok(one.map_or(undefined, i64::from))
                });
                let translated: Vec<i64> = translated.collect::<Result<_, Failure>>()?;
                a.put_all(out, &translated)?;
            }
            "Group_union" => {
                let (one, other) = (a.group()?, a.group()?);
                return self.makes(a, one.union(&other));
            }
            "Group_intersection" => {
                let (one, other) = (a.group()?, a.group()?);
                return self.makes(a, one.intersection(&other));
            }
            "Group_difference" => {
                let (one, other) = (a.group()?, a.group()?);
                return self.makes(a, one.difference(&other));
            }
            "Group_incl" | "Group_excl" => {
                let (group, count) = (a.group()?, a.length()?);
                let ranks = a.numbers(count)?.into_iter();
                let ranks: Vec<u32> = ranks
                    .map(|rank| rank.try_into().unwrap_or(PROC_NULL))
                    .collect();
                let made = match a.call.name {
                    "Group_incl" => group.incl(&ranks)?,
                    _ => group.excl(&ranks)?,
                };
                return self.makes(a, made);
            }
            "Group_range_incl" | "Group_range_excl" => {
                let (group, count) = (a.group()?, a.length()?);
                let numbers = a.numbers(3 * count)?;
                let range = |three: &[i64]| RankRange {
                    first: three[0] as i32,
                    last: three[1] as i32,
                    stride: three[2] as i32,
                };
                let ranges: Vec<RankRange> = numbers.chunks_exact(3).map(range).collect();
                let made = match a.call.name {
                    "Group_range_incl" => group.range_incl(&ranges)?,
                    _ => group.range_excl(&ranges)?,
                };
                return self.makes(a, made);
            }
            "Group_free" => {
                let at = a.address();
                let handle = a.handle_at(at)?;
                let is_empty = handle == a.interface().handle("GROUP_EMPTY");
                if !is_empty {
                    let freed = self.objects.lock().groups.remove(&handle);
                    freed.ok_or_else(|| no_such(ErrorClass::Group, "group", handle))?;
                }
                a.put_null(at, "GROUP_NULL")?;
            }
            _ => return self.unsupported(a),
        }
        SUCCESS
    }

    fn makes(&self, a: &mut Arguments<'_>, group: Group) -> Ended {
        let handle = self.objects.lock().add_group(group);
        let at = a.address();
        a.put_handle(at, handle)?;
        SUCCESS
    }
}
