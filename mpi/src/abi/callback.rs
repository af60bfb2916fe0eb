//! Functions of the program's that calls call: of error handlers, attributes, operations and
//! generalized requests. Each may make calls itself, and these may call functions.
//!
//! Where a call is performed by the [`Server`], its functions may make any call. Functions that are
//! called in the midst of others' work, such as those of operations, make calls that need no other
//! rank ([`Rank::invoke`]).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::arguments::Arguments;
use super::facts::{Returned, Signature};
use super::objects::Handler;
use super::program::{Asked, Beside, Gone, Heard, Proxy, place};
use super::rank::{Ended, Failure, Rank, SUCCESS};
use super::server::Server;
use crate::channel::Channel;

/// A function of the program's, with its arguments.
pub(super) type Function = (u64, Vec<u64>);

/// Functions that are being called, each in the call that the one before it has made.
pub(super) type Depth = AtomicU32;

/// The most of them: a program whose functions call themselves without an end is ended.
const MOST_DEPTH: u32 = 24;

/// The result of a function of the program's.
type Invoked<'s> = Pin<Box<dyn Future<Output = Result<u64, Failure>> + Send + 's>>;

/// The response to the failure of a call.
enum Response {
    /// The call returns this code.
    Returns(u64),
    /// The function of an error handler is told first.
    Tells(Function),
}

impl<C: Channel> Server<'_, C> {
    /// Lets the process call one of its functions, which may make any call itself.
    ///
    /// # Errors
    /// [`Failure::Gone`]
    pub(super) fn invoke<'s>(&'s mut self, function: u64, arguments: &[u64]) -> Invoked<'s> {
        let rank = Arc::clone(&self.rank);
        let about = *rank.about.lock();
        let begun = rank.begin_function(function, arguments);
        // A call within a call: as deep as the program goes.
        Box::pin(async move {
            begun?;
            loop {
                match rank.program.hear()? {
                    Heard::Returned(result) => {
                        rank.depth.fetch_sub(1, Relaxed);
                        *rank.about.lock() = about;
                        return Ok(result);
                    }
                    Heard::Calls(asked) => {
                        let result = match asked.beside {
                            None => self.performs(asked, false).await?.0,
                            Some(beside) => self.beside(beside).await?,
                        };
                        let has_left = self.mpi.has_left().await;
                        let ps = self.fixed_ps(&asked, has_left);
                        self.passes(ps).await?;
                        rank.program.answer(result);
                    }
                }
            }
        })
    }

    /// Responds to the failure of a call as the error handler of what it is about says; the code
    /// that the call returns.
    ///
    /// # Errors
    /// [`Gone`]: the job is ended.
    pub(super) async fn responds(
        &mut self,
        call: &'static Signature,
        failure: Failure,
    ) -> Result<u64, Gone> {
        match self.rank.response(call, &failure)? {
            Response::Returns(code) => Ok(code),
            Response::Tells((function, arguments)) => {
                let told = self.invoke(function, &arguments).await;
                told.map_err(|_| Gone)?;
                Ok(self.rank.code_left())
            }
        }
    }

    /// The calls that call an error handler.
    ///
    /// # Errors
    /// As [`Rank::called_handler`].
    pub(super) async fn calls_handler(&mut self, a: &mut Arguments<'_>) -> Ended {
        if let Some((function, arguments)) = a.rank.called_handler(a)? {
            self.invoke(function, &arguments).await?;
        }
        SUCCESS
    }
}

impl Rank {
    /// Lets the process begin to call one of its functions.
    ///
    /// # Errors
    /// [`Failure::Gone`]: too many are being called, and the job is ended.
    fn begin_function(&self, function: u64, arguments: &[u64]) -> Result<(), Failure> {
        if self.depth.fetch_add(1, Relaxed) >= MOST_DEPTH {
            let why = format!(
                "functions of the program's that are called by MPI make calls in which others are \
                 called, more than {MOST_DEPTH} deep"
            );
            self.program.abort(1, why);
            return Err(Failure::Gone);
        }
        self.program.invoke(function, arguments);
        Ok(())
    }

    /// Puts words, at most [`place::OF_FUNCTION`], where the function that is called next may find
    /// and change them; their address.
    pub(super) fn gives(&self, words: &[u64]) -> u64 {
        self.program.scratch(self.place_of_words(), words)
    }

    /// Such a word, when the function has returned.
    pub(super) fn given(&self, number: usize) -> u64 {
        self.program.scratched(self.place_of_words() + number)
    }

    /// Returns whether a function is being called.
    pub(super) fn calls_function(&self) -> bool {
        self.depth.load(Relaxed) > 0
    }

    /// A function that is called in a call of another one has words of its own.
    fn place_of_words(&self) -> usize {
        place::FUNCTIONS + place::OF_FUNCTION * self.depth.load(Relaxed) as usize
    }

    /// Lets the process call one of its functions, which may make calls that need no other rank.
    ///
    /// # Errors
    /// [`Failure::Gone`]
    pub(super) fn invoke(
        self: &Arc<Self>,
        function: u64,
        arguments: &[u64],
    ) -> Result<u64, Failure> {
        let about = *self.about.lock();
        self.begin_function(function, arguments)?;
        loop {
            match self.program.hear()? {
                Heard::Returned(result) => {
                    self.depth.fetch_sub(1, Relaxed);
                    *self.about.lock() = about;
                    return Ok(result);
                }
                Heard::Calls(asked) => self.program.answer(self.nested(asked)?),
            }
        }
    }

    /// The result of a call that a function makes which the program has given to the library. It
    /// cannot wait for other ranks.
    ///
    /// # Errors
    /// [`Gone`]
    fn nested(self: &Arc<Self>, asked: Asked) -> Result<u64, Gone> {
        if let Some(Beside::Proxy(proxy)) = asked.beside {
            self.set_proxy(proxy);
            return Ok(0);
        }
        let Some(mut arguments) = Arguments::new(self, &asked) else {
            return Ok(0);
        };
        let call = arguments.call;
        self.call(&mut arguments).or_else(|failure| {
            arguments.makes_none();
            match self.response(call, &failure)? {
                Response::Returns(code) => Ok(code),
                Response::Tells((function, arguments)) => {
                    self.invoke(function, &arguments).map_err(|_| Gone)?;
                    Ok(self.code_left())
                }
            }
        })
    }

    /// The response to the failure of a call, as the error handler of what it is about says.
    ///
    /// # Errors
    /// [`Gone`]: the job is ended.
    fn response(&self, call: &'static Signature, failure: &Failure) -> Result<Response, Gone> {
        let code = match failure {
            Failure::Gone => return Err(Gone),
            Failure::Code(code) => i64::from(*code),
            Failure::Wrong { class, .. } => self.code(*class),
        };
        if call.returned != Returned::Code {
            return Ok(Response::Returns(0));
        }
        let about = *self.about.lock();
        let (object, handler) = self.handler_of(about);
        if self.returns_errors(handler) {
            return Ok(Response::Returns(code as u64));
        }
        let found = self.objects.lock().handlers.get(&handler).copied();
        if let Some(found) = found {
            return Ok(Response::Tells(self.told(found, object, code)));
        }
        let name = &call.full_name;
        let class = self.name_of_code(code);
        let why = format!("{name}: {} ({class})", failure.text());
        self.program.abort(code as i32, why);
        Err(Gone)
    }

    /// The function of an error handler, which is told of an object and of a code.
    pub(super) fn told(
        &self,
        Handler { function, proxy }: Handler,
        object: u64,
        code: i64,
    ) -> Function {
        let at = self.gives(&[object, code as u64]);
        match proxy {
            Some(proxy) => (proxy, vec![self.kind_of(object), at, at + 8, function]),
            None => (function, vec![at, at + 8]),
        }
    }

    /// The code that an error handler has left, as MPICH returns it.
    fn code_left(&self) -> u64 {
        u64::from(self.given(1) as u32)
    }

    /// Remembers the proxies for functions of an object; none where there is no such object.
    pub(super) fn set_proxy(&self, proxy: Proxy) {
        let mut objects = self.objects.lock();
        match proxy {
            Proxy::Operation(handle, proxy) => {
                let found = objects.ops.get(&handle).filter(|op| !op.is_predefined);
                // It is told once, when the operation has been made.
                let _ = found.map(|op| op.proxy.set(proxy));
            }
            Proxy::Handler(handle, proxy) => {
                let found = objects.handlers.get_mut(&handle);
                let _ = found.map(|handler| handler.proxy = Some(proxy));
            }
            Proxy::Key(number, proxies) => {
                let found = objects.keys.get_mut(&number);
                let _ = found.map(|key| key.proxies = Some(proxies));
            }
        }
    }

    /// The kind of object of a handle, as MPICH's library for C++ numbers them.
    fn kind_of(&self, handle: u64) -> u64 {
        let objects = self.objects.lock();
        match (
            objects.comms.contains_key(&handle),
            objects.windows.contains_key(&handle),
        ) {
            (true, _) => 0,
            (_, true) => 2,
            _ => 1,
        }
    }
}
