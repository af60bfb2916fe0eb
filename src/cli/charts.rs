//! The charts that a command draws into the directory of `--figures`: their files are opened before
//! anything is simulated, and appear when all of them are written.

use std::path::Path;

use crate::report::output::Output;
use crate::report::stop::Stop;

const FLAG: &str = "--figures";

/// The files of charts, by name.
pub struct Charts(Vec<(String, Output)>);

impl Charts {
    /// Those of these names in `directory`, which is made; none without one.
    pub fn open(
        directory: Option<&Path>,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Self, Stop> {
        let Some(directory) = directory else {
            return Ok(Self(Vec::new()));
        };
        std::fs::create_dir_all(directory)
            .map_err(|error| Stop::unwritable(FLAG, directory, &error))?;
        let files = names.into_iter().map(|name| {
            let file = Output::file(FLAG, &directory.join(&name))?;
            Ok((name, file))
        });
        files.collect::<Result<_, Stop>>().map(Self)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the SVG text of each name; a file that none is for stays as it was.
    pub fn write(self, drawn: &[(String, String)]) -> Result<(), Stop> {
        let mut written = Vec::with_capacity(self.0.len());
        for (name, mut file) in self.0 {
            if let Some((_, svg)) = drawn.iter().find(|(of, _)| *of == name) {
                file.push(svg)?;
                written.push(file);
            }
        }
        written.into_iter().try_for_each(Output::commit)
    }
}
