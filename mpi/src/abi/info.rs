//! Info objects.

use super::arguments::Arguments;
use super::objects::no_such;
use super::rank::{Ended, Failure, Rank, SUCCESS};
use crate::error::ErrorClass;
use crate::info::Info;

impl Rank {
    /// The calls about info objects.
    pub(super) fn infos(&self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Info_create" | "Info_create_env" => {
                if a.call.name == "Info_create_env" {
                    a.skip();
                    a.skip();
                }
                self.gives_info(a, Info::new())?;
            }
            "Info_dup" => {
                let (_, info) = self.info(a)?;
                self.gives_info(a, info)?;
            }
            "Info_free" => {
                let at = a.address();
                let handle = a.handle_at(at)?;
                let freed = self.objects.lock().infos.remove(&handle);
                freed.ok_or_else(|| no_info(handle))?;
                a.put_null(at, "INFO_NULL")?;
            }
            "Info_set" => {
                let (handle, _) = self.info(a)?;
                let (key, value) = (a.string()?, a.string()?);
                let mut objects = self.objects.lock();
                if let Some(info) = objects.infos.get_mut(&handle) {
                    info.set(&key, &value)?;
                }
            }
            "Info_delete" => {
                let (handle, _) = self.info(a)?;
                let key = a.string()?;
                let mut objects = self.objects.lock();
                if let Some(info) = objects.infos.get_mut(&handle) {
                    info.delete(&key)?;
                }
            }
            "Info_get" => {
                let (_, info) = self.info(a)?;
                let (key, room) = (a.string()?, a.length()?);
                let (at, flag) = (a.address(), a.out());
                let value = info.get(&key)?;
                a.put(flag, value.is_some().into())?;
                if let Some(value) = value {
                    self.put_string(at, value, room + 1)?;
                }
            }
            "Info_get_string" => {
                let (_, info) = self.info(a)?;
                let key = a.string()?;
                let (length, at, flag) = (a.out(), a.address(), a.out());
                let room = self.numbers(length.address, 1, 4)?[0].max(0) as usize;
                let value = info.get(&key)?;
                a.put(flag, value.is_some().into())?;
                if let Some(value) = value {
                    if room > 0 {
                        self.put_string(at, value, room)?;
                    }
                    a.put(length, value.len() as i64 + 1)?;
                }
            }
            "Info_get_valuelen" => {
                let (_, info) = self.info(a)?;
                let key = a.string()?;
                let (length, flag) = (a.out(), a.out());
                let value = info.get(&key)?;
                a.put(flag, value.is_some().into())?;
                if let Some(value) = value {
                    a.put(length, value.len() as i64)?;
                }
            }
            "Info_get_nkeys" => {
                let (_, info) = self.info(a)?;
                let out = a.out();
                a.put(out, info.keys().len() as i64)?;
            }
            "Info_get_nthkey" => {
                let (_, info) = self.info(a)?;
                let (number, at) = (a.number(), a.address());
                let key = usize::try_from(number)
                    .ok()
                    .and_then(|number| info.keys().nth(number));
                let key = key.ok_or_else(|| {
                    Failure::new(ErrorClass::Arg, format!("n: there is no key {number}"))
                })?;
                self.put_string(at, key, key.len() + 1)?;
            }
            _ => return self.unsupported(a),
        }
        SUCCESS
    }

    /// An info object with its handle, which must not be null.
    fn info(&self, a: &mut Arguments<'_>) -> Result<(u64, Info), Failure> {
        let handle = a.handle();
        let found = self.objects.lock().infos.get(&handle).cloned();
        Ok((handle, found.ok_or_else(|| no_info(handle))?))
    }

    /// Gives the program a new info object.
    pub(super) fn gives_info(&self, a: &mut Arguments<'_>, info: Info) -> Result<(), Failure> {
        let handle = self.objects.lock().add_info(info);
        let at = a.address();
        a.put_handle(at, handle)
    }
}

fn no_info(handle: u64) -> Failure {
    no_such(ErrorClass::Info, "info object", handle)
}
