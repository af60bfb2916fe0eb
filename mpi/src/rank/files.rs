//! Calls on files, which the ranks of a communicator have opened together: the steps of a call in
//! which they agree, and let rank 0 act for all of them.

use std::panic::Location;

use super::{Communicator, Entered, Mpi};
use crate::channel::Channel;
use crate::collective::choice::Algorithm;
use crate::collective::{self, Call, words};
use crate::comm::Comm;
use crate::comm::create::teams;
use crate::device::Task;
use crate::device::driver::Site;
use crate::error::{ErrorClass, Fault, MpiError};

/// A call on a file that has been entered.
pub(crate) struct FileCall<'m, C> {
    on: Communicator<'m, C>,
    entered: Entered<'m>,
    site: Site,
}

/// The class of no error, among the numbers of ranks.
const NONE: i64 = -1;

impl<'m, C: Channel> Communicator<'m, C> {
    /// Enters a call on a file, of so many bytes of data.
    ///
    /// # Errors
    /// Another call of the rank is under way.
    #[track_caller]
    pub(crate) fn enters_file(
        &self,
        call: &'static str,
        bytes: u64,
    ) -> impl Future<Output = Result<FileCall<'m, C>, MpiError>> + Send {
        let (on, site) = (self.clone(), Location::caller());
        async move {
            let entered = on.mpi.enter(call, None, bytes).await?;
            Ok(FileCall { on, entered, site })
        }
    }
}

impl<C: Channel> FileCall<'_, C> {
    fn mpi(&self) -> &Mpi<C> {
        self.on.mpi
    }

    async fn run(&self, task: Task) -> Result<Vec<u8>, Fault> {
        self.mpi().run(self.site, task).await
    }

    /// The numbers of all ranks, each of which gives as many.
    async fn all(&self, own: &[i64]) -> Result<Vec<i64>, Fault> {
        let (team, _) = teams(self.mpi().device(), &self.on.comm, Call::File, 0);
        let ranks = self.on.size() as usize;
        let own = to_bytes(own);
        let lengths = vec![own.len(); ranks];
        let all = collective::allgather(team, Algorithm::Bruck, (own, lengths));
        Ok(from_bytes(&self.run(Box::pin(all)).await?))
    }

    /// The number of each rank, unless this one, or another one, has got a wrong argument: of this
    /// class.
    pub(crate) async fn shares(
        &self,
        wrong: Option<ErrorClass>,
        own: u64,
    ) -> Result<Vec<u64>, Fault> {
        let all = self.right(wrong, &[own as i64]).await?;
        Ok(all.into_iter().map(|number| number as u64).collect())
    }

    /// Ends everywhere with an error if this rank, or another one, has got a wrong argument, of
    /// this class, or if these numbers are not the same at all ranks.
    pub(crate) async fn agree(&self, wrong: Option<ErrorClass>, same: &[i64]) -> Result<(), Fault> {
        let all = self.right(wrong, same).await?;
        match all
            .chunks_exact(same.len().max(1))
            .all(|given| given == same)
        {
            true => Ok(()),
            false => {
                let text = "the ranks of the file give different arguments";
                Err(Fault::new(ErrorClass::NotSame, "fh", text))
            }
        }
    }

    /// The numbers of all ranks, unless the arguments of one are wrong.
    async fn right(&self, wrong: Option<ErrorClass>, own: &[i64]) -> Result<Vec<i64>, Fault> {
        let mut numbers = vec![wrong.map_or(NONE, |class| class as i64)];
        numbers.extend(own);
        let all = self.all(&numbers).await?;
        let mut ranks = (0..).zip(all.chunks_exact(numbers.len()));
        if let Some((rank, given)) = ranks.find(|(_, given)| given[0] != NONE) {
            return Err(failed(rank, given[0]));
        }
        let ranks = all.chunks_exact(numbers.len());
        Ok(ranks.flat_map(|given| &given[1..]).copied().collect())
    }

    /// Lets rank 0 act, and tells all of them the number that comes of it.
    pub(crate) async fn first(
        &self,
        acts: impl FnOnce() -> Result<u64, Fault> + Send,
    ) -> Result<u64, Fault> {
        let (team, _) = teams(self.mpi().device(), &self.on.comm, Call::File, 0);
        let acted = match self.on.rank() {
            0 => Some(acts()),
            _ => None,
        };
        let numbers = acted.as_ref().map_or([NONE, 0], |acted| match acted {
            Ok(number) => [NONE, *number as i64],
            Err(fault) => [fault.class as i64, 0],
        });
        let told = (0, to_bytes(&numbers), size_of_val(&numbers));
        let told = collective::broadcast(team, Algorithm::Binomial, told);
        let told = from_bytes(&self.run(Box::pin(told)).await?);
        match (acted, told.as_slice()) {
            (Some(acted), _) => acted,
            (None, [NONE, number]) => Ok(*number as u64),
            (None, [class, ..]) => Err(failed(0, *class)),
            (None, []) => Err(failed(0, NONE)),
        }
    }

    /// Waits until all ranks have come here.
    pub(crate) async fn meet(&self) -> Result<(), Fault> {
        let meeting = self.mpi().meeting(&self.on.comm, Call::File);
        self.run(meeting).await.map(drop)
    }

    /// A communicator of the same ranks, for calls on the file alone.
    pub(crate) async fn duplicate(&self) -> Result<Comm, Fault> {
        let task = self.mpi().device().begin_task(self.on.duplicate());
        let made = self.on.made(self.site, task).await?;
        Ok(self.on.twin(made.context).comm)
    }

    /// Leaves the call with its result.
    pub(crate) async fn ends<T>(self, result: Result<T, Fault>) -> Result<T, MpiError> {
        let mpi = self.on.mpi;
        mpi.close(self.entered, &self.on.comm, result).await
    }
}

/// The error of a call that has failed at another rank.
fn failed(rank: u32, class: i64) -> Fault {
    let class = usize::try_from(class).ok();
    let class = class.and_then(|class| ErrorClass::ALL.get(class));
    let class = class.copied().unwrap_or(ErrorClass::Intern);
    Fault::new(class, "fh", format!("the call has failed at rank {rank}"))
}

fn to_bytes(numbers: &[i64]) -> Vec<u8> {
    let words = numbers.iter().map(|&number| number as u64);
    words::to_bytes(&words.collect::<Vec<_>>())
}

fn from_bytes(bytes: &[u8]) -> Vec<i64> {
    words::from_bytes(bytes).map(|word| word as i64).collect()
}
