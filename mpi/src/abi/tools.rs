//! The tool interface (MPI-4.1, Ch. 15), of a library that has no variables, events, sources and
//! categories: every index and name is wrong, and so is every handle but that of a session. Its
//! calls may come before MPI_Init and after MPI_Finalize, and their errors go to no error handler.

use rustc_hash::FxHashSet;

use super::arguments::Arguments;
use super::rank::{Ended, Failure, Rank};

/// The state of the tool interface at a rank.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Calls of MPI_T_init_thread without one of MPI_T_finalize.
    initialized: u64,
    sessions: FxHashSet<u64>,
    /// Sessions that there have been.
    made: u64,
}

/// The errors of the tool interface, by the names of their constants.
mod error {
    pub(super) const NOT_INITIALIZED: &str = "T_ERR_NOT_INITIALIZED";
    pub(super) const INVALID: &str = "T_ERR_INVALID";
    pub(super) const INDEX: &str = "T_ERR_INVALID_INDEX";
    pub(super) const NAME: &str = "T_ERR_INVALID_NAME";
    pub(super) const HANDLE: &str = "T_ERR_INVALID_HANDLE";
    pub(super) const SESSION: &str = "T_ERR_INVALID_SESSION";
}

/// The handle that stands for all of a session (MPI_T_PVAR_ALL_HANDLES).
const ALL_HANDLES: u64 = 1;

impl Rank {
    /// The calls of the tool interface.
    pub(super) fn tools(&self, a: &mut Arguments<'_>) -> Ended {
        let name = match self.tool(a) {
            Ok(None) => "SUCCESS",
            Ok(Some(error)) => error,
            Err(Failure::Gone) => return Err(Failure::Gone),
            // An address that is none.
            Err(_) => error::INVALID,
        };
        Ok(self.interface.constant(name) as u64)
    }

    /// Performs a call; the name of the error that it ends with.
    fn tool(&self, a: &mut Arguments<'_>) -> Result<Option<&'static str>, Failure> {
        let name = a.call.name;
        if name == "T_init_thread" {
            let required = a.number();
            let most = self.interface.constant("THREAD_SERIALIZED");
            let provided = a.out();
            a.put(provided, required.min(most))?;
            self.objects.lock().tools.initialized += 1;
            return Ok(None);
        }
        let objects = &mut *self.objects.lock();
        let tools = &mut objects.tools;
        let Some(left) = tools.initialized.checked_sub(1) else {
            return Ok(Some(error::NOT_INITIALIZED));
        };
        match name {
            "T_finalize" => {
                tools.initialized = left;
                if left == 0 {
                    tools.sessions.clear();
                }
            }
            "T_category_changed" => {
                let stamp = a.out();
                a.put(stamp, 0)?;
            }
            "T_pvar_session_create" => {
                let out = a.out();
                let session = tools.made + 1;
                a.put(out, session as i64)?;
                tools.made = session;
                tools.sessions.insert(session);
            }
            "T_pvar_session_free" => {
                let at = a.address();
                let session = self.numbers(at, 1, 8)?;
                let session = session.first().map_or(0, |&session| session as u64);
                if !tools.sessions.remove(&session) {
                    return Ok(Some(error::SESSION));
                }
                self.put_numbers(at, &[0], 8)?;
            }
            _ if name.ends_with("_get_num") => {
                let number = a.out();
                a.put(number, 0)?;
            }
            _ if name.ends_with("_get_index") => return Ok(Some(error::NAME)),
            _ if a.call.kinds.first() == Some(&"int") => return Ok(Some(error::INDEX)),
            _ if name.starts_with("T_pvar_") => {
                if !tools.sessions.contains(&a.address()) {
                    return Ok(Some(error::SESSION));
                }
                let handle = a.address();
                return Ok(match name {
                    "T_pvar_handle_alloc" => Some(error::INDEX),
                    // There is none to do it to.
                    "T_pvar_start" | "T_pvar_stop" | "T_pvar_reset" if handle == ALL_HANDLES => {
                        None
                    }
                    _ => Some(error::HANDLE),
                });
            }
            _ => return Ok(Some(error::HANDLE)),
        }
        Ok(None)
    }
}
