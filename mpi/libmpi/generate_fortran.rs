//! Generates the entry points that programs in Fortran call, for MPICH's `mpif.h` and its module
//! `mpi`, from the table of calls.

use std::fmt::Write as _;

/// Calls whose entry points for Fortran are in `src/fortran`, since more than the way in which
/// arguments are passed differs there.
const OWN: [&str; 34] = [
    "Address",
    "Aint_add",
    "Aint_diff",
    "Alloc_mem",
    "Attr_get",
    "Attr_put",
    "Buffer_detach",
    "Comm_create_keyval",
    "Comm_get_attr",
    "Comm_set_attr",
    "Comm_spawn",
    "Comm_spawn_multiple",
    "Finalized",
    "Free_mem",
    "Get_address",
    "Grequest_start",
    "Info_create_env",
    "Info_get_string",
    "Init",
    "Init_thread",
    "Initialized",
    "Is_thread_main",
    "Keyval_create",
    "Pcontrol",
    "Session_get_nth_pset",
    "Type_create_keyval",
    "Type_get_attr",
    "Type_hindexed",
    "Type_hvector",
    "Type_set_attr",
    "Type_struct",
    "Win_create_keyval",
    "Win_get_attr",
    "Win_set_attr",
];

/// Calls with an address that C and Fortran return as an INTEGER: it is 8 bytes long in C.
const SHORT: [&str; 3] = ["Type_extent", "Type_lb", "Type_ub"];

/// Calls with one index that Fortran counts from 1.
const INDEX: [&str; 3] = ["Waitany", "Testany", "Request_get_status_any"];

/// Calls with several such indices.
const INDICES: [&str; 3] = ["Waitsome", "Testsome", "Request_get_status_some"];

/// Calls that C_PTR has second entry points for.
const POINTER: [&str; 3] = ["Win_allocate", "Win_allocate_shared", "Win_shared_query"];

/// Returns whether Fortran has this call, but for those whose entry points are not generated.
fn has(name: &str, returns: &str) -> bool {
    let is_of_c = ["_fromint", "_toint", "_f2c", "_c2f", "_c"];
    let is_of_c = is_of_c.iter().any(|end| name.ends_with(end)) || name.contains("f08");
    let is_other = name.starts_with("T_") || name.starts_with("Abi_");
    !is_of_c && !is_other && !OWN.contains(&name) && returns != "usize"
}

/// The entry point for Fortran of a call with this number and these arguments ("kind:name"), and
/// its twin for profiling.
pub fn entry(code: &mut String, (name, number): (&str, u32), arguments: &[&str], returns: &str) {
    if !has(name, returns) {
        return;
    }
    let mut entry = Entry::default();
    for (place, argument) in arguments.iter().enumerate() {
        let (kind, argument) = argument.trim().split_once(':').expect("it has a name");
        entry.takes(name, place, (kind, argument));
    }
    let lower = name.to_lowercase();
    let mut symbols = vec![format!("mpi_{lower}_"), format!("pmpi_{lower}_")];
    if POINTER.contains(&name) {
        symbols.extend([format!("mpi_{lower}_cptr_"), format!("pmpi_{lower}_cptr_")]);
    }
    for symbol in symbols {
        let _ = writeln!(code, "/// MPI_{name}.\n#[unsafe(no_mangle)]");
        entry.write(code, &symbol, number, returns);
    }
}

/// An entry point: its code in parts.
#[derive(Default)]
struct Entry {
    parameters: Vec<String>,
    /// The lengths of its texts.
    lengths: Vec<String>,
    /// Statements before the call.
    before: String,
    /// The arguments of the call.
    values: Vec<String>,
    /// Statements after it.
    after: String,
}

impl Entry {
    /// Takes the next argument of the call `name`.
    fn takes(&mut self, name: &str, place: usize, (kind, argument): (&str, &str)) {
        let at = format!("a{place}");
        let value = match kind {
            "int" | "count" | "disp" | "comm" | "group" | "type" | "op" | "request" | "message"
            | "win" | "file" | "info" | "errhandler" | "session" => format!("number({at})"),
            "aint" | "offset" | "long" => format!("word({at})"),
            "string" => {
                self.lengths.push(format!("l{place}: usize"));
                let of = match name.starts_with("Info") {
                    true => "Text::trimmed",
                    false => "Text::new",
                };
                let _ = write!(self.before, "let t{place} = {of}({at}, l{place}); ");
                format!("t{place}.address()")
            }
            "*string" => {
                self.lengths.push(format!("l{place}: usize"));
                let _ = write!(
                    self.before,
                    "let mut r{place} = Room::new({at}, l{place}); "
                );
                let _ = write!(self.after, "r{place}.fill(); ");
                format!("r{place}.address()")
            }
            "*file" => {
                // A pointer in C, whose values fit into an INTEGER.
                let _ = write!(self.before, "let mut f{place} = number({at}); ");
                let _ = write!(self.after, "give({at}, f{place} as i32); ");
                format!("(&raw mut f{place}) as usize")
            }
            "*aint" if SHORT.contains(&name) => {
                let _ = write!(self.before, "let mut w{place} = 0_isize; ");
                let _ = write!(self.after, "give({at}, w{place} as i32); ");
                format!("(&raw mut w{place}) as usize")
            }
            _ => {
                self.counts(name, &at, argument);
                format!("place({at})")
            }
        };
        self.parameters.push(format!("{at}: usize"));
        self.values.push(value);
    }

    /// Lets indices that the call tells of be counted from 1.
    fn counts(&mut self, name: &str, at: &str, argument: &str) {
        if INDEX.contains(&name) && argument == "indx" {
            let _ = write!(self.before, "give({at}, UNDEFINED); ");
            let _ = write!(self.after, "from_one({at}, 1); ");
        }
        if INDICES.contains(&name) && argument == "outcount" {
            let _ = write!(self.before, "give({at}, UNDEFINED); ");
        }
        if INDICES.contains(&name) && argument == "array_of_indices" {
            // The number of indices is the argument before them.
            let _ = write!(self.after, "from_one({at}, number(a2) as i32); ");
        }
    }

    /// Writes the entry point under this name.
    fn write(&self, code: &mut String, symbol: &str, number: u32, returns: &str) {
        let call = super::call(number, &self.values.join(", "));
        let (before, after) = (&self.before, &self.after);
        if returns == "f64" {
            let _ = writeln!(
                code,
                "pub extern \"C\" fn {symbol}() -> f64 {{ f64::from_bits({call}) }}"
            );
            return;
        }
        let mut parameters = self.parameters.clone();
        parameters.push("error: usize".to_owned());
        parameters.extend(self.lengths.iter().cloned());
        let parameters = parameters.join(", ");
        let _ = writeln!(
            code,
            "pub extern \"C\" fn {symbol}({parameters}) {{ \
             {before}let code = {call} as i32; {after}give(error, code); }}"
        );
    }
}
