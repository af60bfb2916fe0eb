//! Processes that find each other: ports, and the names of services.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::arguments::Arguments;
use super::rank::{Ended, Failure, SUCCESS};
use super::server::Server;
use crate::channel::Channel;
use crate::error::{ErrorClass, Fault};
use crate::rank::NameService;

/// The services of a job, with their ports.
pub type Services = Mutex<BTreeMap<String, String>>;

/// The services that the processes of a job have published.
struct Names<'s>(&'s Services);

impl NameService for Names<'_> {
    async fn publish(&self, service: &str, port: &str) -> Result<(), Fault> {
        let mut all = self.0.lock();
        if all.contains_key(service) {
            let text = format!("{service} has been published");
            return Err(Fault::new(ErrorClass::Service, "service_name", text));
        }
        all.insert(service.to_owned(), port.to_owned());
        Ok(())
    }

    async fn look_up(&self, service: &str) -> Result<String, Fault> {
        let found = self.0.lock().get(service).cloned();
        found.ok_or_else(|| {
            let text = format!("{service} has not been published");
            Fault::new(ErrorClass::Name, "service_name", text)
        })
    }

    async fn unpublish(&self, service: &str, port: &str) -> Result<(), Fault> {
        let mut all = self.0.lock();
        if all.get(service).is_none_or(|known| known != port) {
            let text = format!("{service} has not been published with this port");
            return Err(Fault::new(ErrorClass::Service, "service_name", text));
        }
        all.remove(service);
        Ok(())
    }
}

impl<C: Channel> Server<'_, C> {
    /// The calls about processes and ports.
    pub(super) async fn processes(&mut self, a: &mut Arguments<'_>) -> Ended {
        let program = std::sync::Arc::clone(&self.rank.program);
        let names = Names(program.services());
        match a.call.name {
            "Open_port" => {
                a.info()?;
                let port = self.mpi.open_port().await?;
                self.gives_port(a, &port)?;
            }
            "Close_port" => {
                let port = a.string()?;
                self.mpi.close_port(&port).await?;
            }
            "Publish_name" => {
                let (service, _, port) = (a.string()?, a.info()?, a.string()?);
                self.mpi.publish_name(&names, &service, &port).await?;
            }
            "Unpublish_name" => {
                let (service, _, port) = (a.string()?, a.info()?, a.string()?);
                self.mpi.unpublish_name(&names, &service, &port).await?;
            }
            "Lookup_name" => {
                let (service, _) = (a.string()?, a.info()?);
                let port = self.mpi.lookup_name(&names, &service).await?;
                self.gives_port(a, &port)?;
            }
            "Comm_accept" | "Comm_connect" => {
                let port = a.address();
                a.info()?;
                let root = a.root()?;
                let (_, object) = a.comm_object()?;
                let on = self.mpi.on(object.comm);
                // Only the root has a port.
                let port = match root == on.rank() {
                    true => self.rank.string(port)?,
                    false => String::new(),
                };
                let made = match a.call.name {
                    "Comm_accept" => on.accept(&port, root).await?,
                    _ => on.connect(&port, root).await?,
                };
                let at = a.address();
                self.made(a, at, Some(made), object.object.handler)?;
            }
            "Comm_disconnect" => {
                let at = a.address();
                let handle = a.handle_at(at)?;
                return self.free_comm(a, at, handle, true).await;
            }
            // As MPI-4.1, Sec. 11.10.4, has it where a socket leads to no way for messages.
            "Comm_join" => {
                program
                    .tell("MPI_Comm_join joins no processes: it returns MPI_COMM_NULL".to_owned());
                a.number();
                let at = a.address();
                a.put_null(at, "COMM_NULL")?;
            }
            "Comm_get_parent" => {
                let at = a.address();
                let parent = {
                    let objects = self.rank.objects.lock();
                    let parent = objects.parent;
                    parent.filter(|handle| objects.comms.contains_key(handle))
                };
                match parent {
                    Some(handle) => a.put_handle(at, handle)?,
                    None => a.put_null(at, "COMM_NULL")?,
                }
            }
            "Comm_spawn" | "Comm_spawn_multiple" => return self.spawn(a).await,
            _ => return self.rank.unsupported(a),
        }
        SUCCESS
    }

    fn gives_port(&self, a: &mut Arguments<'_>, port: &str) -> Result<(), Failure> {
        let room = a.interface().constant("MAX_PORT_NAME") as usize;
        let at = a.address();
        self.rank.put_string(at, port, room).map(drop)
    }
}
