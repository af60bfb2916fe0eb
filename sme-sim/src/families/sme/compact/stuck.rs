//! The conditions for which threads of compact form wait for ever.

use sme_memory::{Leader, Step, Until};

use super::followers::FollowersAtRest;
use super::following::step;
use super::plan::{NodeForm, RunPlan};
use super::rest::{Rest, Stage, Waiting};
use super::work::{Work, line};
use crate::families::sme::cluster::constants::origin_of;
use crate::observe::stuck::{Awaited, Stuck};

/// The first `most` threads of `node`, which is at rest for ever, that have not ended.
pub fn stuck<L: Leader>(
    plan: &RunPlan<L>,
    node: u32,
    (rest, followers): (&Rest<L::State>, &FollowersAtRest),
    most: usize,
) -> Vec<Stuck> {
    let form = &plan.form;
    let mut work = Work::new(form);
    let first = rest.unpack(form, &mut work);
    followers.wake(form, &mut work);
    let stuck = |core, spins, awaited: Option<(u16, Until)>| Stuck {
        node,
        core,
        doing: if spins {
            "spins in its cache".into()
        } else {
            "does not get any further".into()
        },
        call: None,
        site: None,
        awaited: awaited.map(|(line, until)| {
            let offset = form.offset(line);
            let address = plan.constants.map.physical(offset);
            awaited_at(form, (node, offset), &work, core, (line, address), until)
        }),
    };
    let leader = (first.stage != Stage::Ended).then(|| {
        let spins = first.waiting == Waiting::Cache;
        let awaited = match first.step {
            Step::Wait(offset, until) => Some((form.line(offset), until)),
            Step::WaitAll(row, until) => {
                let offset = row.first + u64::from(first.passed) * u64::from(row.stride);
                Some((form.line(offset), until))
            }
            Step::Read(_) | Step::Set(..) | Step::Leave => None,
        };
        stuck(0, spins, awaited)
    });
    let followers = (1..form.threads as u16).filter_map(|number| {
        let core = work.cores[usize::from(number)];
        let awaited = (form.phase, Until::IsNot(core.phase));
        match core.step {
            step::ENDED => None,
            step::WAIT => Some(stuck(number, true, Some(awaited))),
            _ => Some(stuck(number, false, None)),
        }
    });
    leader.into_iter().chain(followers).take(most).collect()
}

/// The contents of `address`, in a line at this node and offset, which `core` awaits.
fn awaited_at(
    form: &NodeForm,
    (node, offset): (u32, u64),
    work: &Work,
    core: u16,
    (number, address): (u16, u64),
    until: Until,
) -> Awaited {
    let (memory, copies, dirty, cached) = if number == form.phase {
        let phase = &work.phase;
        let cached = work.phase_in_cache(core);
        (phase.memory, phase.copies, phase.dirty, cached)
    } else {
        let bits = work.bits[usize::from(number)];
        let is = |bit| u8::from(bits & bit != 0);
        let cached = work.flag_in_cache(number);
        let dirty = bits & line::DIRTY != 0;
        (is(line::MEMORY), is(line::COPIES), dirty, cached)
    };
    let writer = match form.follower_of(number) {
        // Its own flag, if it has come to that.
        Some(follower) => {
            let core = &work.cores[usize::from(follower)];
            let has_written = core.episode > 0 || core.step > step::READ;
            has_written.then_some((node, follower))
        }
        None => {
            let writer = work.writers.iter().find(|(line, _)| *line == number);
            writer.map(|&(_, origin)| origin_of(origin))
        }
    };
    Awaited {
        address,
        until: Some(until),
        at_home: u64::from(if dirty { copies } else { memory }),
        in_memory: u64::from(memory),
        cached: cached.map(u64::from),
        writer,
        written_at: None,
        name: None,
        place: Some((node, offset)),
        unwritten: None,
    }
}
