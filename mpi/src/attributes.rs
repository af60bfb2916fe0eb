//! Attributes (MPI-4.1, Sec. 7.7): values that a program attaches to a communicator or a window
//! under a key of its own.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::error::{ErrorClass, Fault};

/// A value.
pub type Value = Arc<dyn Any + Send + Sync>;

/// Makes the value that a duplicate of the communicator gets from the original's, or none.
pub type Copy = dyn Fn(&Value) -> Option<Value> + Send + Sync;

/// Is told of a value that is replaced or deleted, or whose communicator is freed.
pub type Delete = dyn Fn(&Value) + Send + Sync;

/// A key. Cheap to clone: clones are the same key.
#[derive(Clone)]
pub struct Keyval(Arc<Inner>);

struct Inner {
    copy: Box<Copy>,
    delete: Box<Delete>,
    is_freed: AtomicBool,
}

impl Keyval {
    /// With these functions (MPI_Comm_create_keyval, MPI_Win_create_keyval).
    pub fn new(
        copy: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static,
        delete: impl Fn(&Value) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            copy: Box::new(copy),
            delete: Box::new(delete),
            is_freed: AtomicBool::new(false),
        }))
    }

    /// One whose values duplicates do not get (MPI_COMM_NULL_COPY_FN).
    pub fn not_copied() -> Self {
        Self::new(|_| None, |_| {})
    }

    /// One whose values duplicates share (MPI_COMM_DUP_FN).
    pub fn shared() -> Self {
        Self::new(|value| Some(Arc::clone(value)), |_| {})
    }

    /// Ends its use for new values (MPI_Comm_free_keyval); those that are attached stay.
    ///
    /// # Errors
    /// [`ErrorClass::Keyval`] if it has been freed.
    pub fn free(&self) -> Result<(), Fault> {
        match self.0.is_freed.swap(true, Ordering::Relaxed) {
            false => Ok(()),
            true => Err(freed()),
        }
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Keyval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyval({:p})", Arc::as_ptr(&self.0))
    }
}

fn freed() -> Fault {
    Fault::new(ErrorClass::Keyval, "keyval", "the key has been freed")
}

/// The attributes of one communicator or window, in the order in which they were attached.
#[derive(Default)]
pub(crate) struct Attributes(Mutex<Vec<(Keyval, Value)>>);

impl Attributes {
    /// Attaches a value (MPI_Comm_set_attr); an earlier one under that key is deleted.
    ///
    /// # Errors
    /// [`ErrorClass::Keyval`] if the key has been freed.
    pub(crate) fn set(&self, key: &Keyval, value: Value) -> Result<(), Fault> {
        if key.0.is_freed.load(Ordering::Relaxed) {
            return Err(freed());
        }
        let before = self.take(key);
        self.0.lock().push((key.clone(), value));
        if let Some(before) = before {
            (key.0.delete)(&before);
        }
        Ok(())
    }

    /// The value under a key (MPI_Comm_get_attr).
    pub(crate) fn get(&self, key: &Keyval) -> Option<Value> {
        let all = self.0.lock();
        let found = all.iter().find(|(known, _)| known.is(key));
        found.map(|(_, value)| Arc::clone(value))
    }

    /// Deletes it (MPI_Comm_delete_attr).
    ///
    /// # Errors
    /// [`ErrorClass::Keyval`] if there is none.
    pub(crate) fn delete(&self, key: &Keyval) -> Result<(), Fault> {
        let Some(value) = self.take(key) else {
            let text = "nothing is attached under the key";
            return Err(Fault::new(ErrorClass::Keyval, "keyval", text));
        };
        (key.0.delete)(&value);
        Ok(())
    }

    fn take(&self, key: &Keyval) -> Option<Value> {
        let mut all = self.0.lock();
        let place = all.iter().position(|(known, _)| known.is(key))?;
        Some(all.remove(place).1)
    }

    /// Those of a duplicate.
    pub(crate) fn copied(&self) -> Self {
        let all = self.0.lock().clone();
        let copies = all.into_iter().filter_map(|(key, value)| {
            let copy = (key.0.copy)(&value)?;
            Some((key, copy))
        });
        Self(Mutex::new(copies.collect()))
    }

    /// All of them, which are then not here any more.
    pub(crate) fn moved(&self) -> Self {
        Self(Mutex::new(std::mem::take(&mut *self.0.lock())))
    }

    /// Deletes all, the last one first, as MPI_COMM_SELF has it at MPI_Finalize (Sec. 11.2.4).
    pub(crate) fn delete_all(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        for (key, value) in all.into_iter().rev() {
            (key.0.delete)(&value);
        }
    }
}
