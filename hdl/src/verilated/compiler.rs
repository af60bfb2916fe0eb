//! The C++ compiler that builds verilated blocks: the one that `$CXX` names, else one that is
//! installed. Called by [`super::Toolchain`].

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use super::{VerilatedError, file_error};
use crate::tool;

/// A compiler that can be run, from any directory.
#[derive(Clone, Debug)]
pub(super) struct Compiler {
    program: OsString,
    arguments: Vec<OsString>,
    version: String,
}

impl Compiler {
    /// Finds the compiler that `$CXX` names, else the first of `c++`, `g++` and `clang++` that can
    /// be run.
    pub fn find() -> Result<Self, VerilatedError> {
        if let Some(named) = std::env::var_os("CXX").and_then(|words| Self::named(&words)) {
            return named;
        }
        Self::new("c++".into(), Vec::new()).or_else(|error| {
            let others = ["g++", "clang++"].into_iter();
            let mut others = others.map(|name| Self::new(name.into(), Vec::new()));
            others.find_map(Result::ok).ok_or(error)
        })
    }

    /// A program, with arguments behind blanks, as in `ccache c++`; None where there is none.
    pub fn named(words: &OsStr) -> Option<Result<Self, VerilatedError>> {
        // A name that is not Unicode is taken as it is.
        let mut words: Vec<OsString> = match words.to_str() {
            Some(words) => words.split_whitespace().map(OsString::from).collect(),
            None => vec![words.to_owned()],
        };
        let arguments = words.split_off(words.len().min(1));
        Some(Self::new(words.pop()?, arguments))
    }

    fn new(mut program: OsString, arguments: Vec<OsString>) -> Result<Self, VerilatedError> {
        // A path is from here, but it will run elsewhere. A mere name is looked up in `$PATH`.
        let path = Path::new(&program);
        if path.components().nth(1).is_some() {
            let absolute = std::path::absolute(path).map_err(|error| file_error(path, error))?;
            program = absolute.into();
        }
        let mut compiler = Self {
            program,
            arguments,
            version: String::new(),
        };
        compiler.version = tool::stdout(compiler.command().arg("--version"))?;
        Ok(compiler)
    }

    /// Returns the identity of the compiler: its name, and its own words about its version.
    pub fn identity(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        let mut identity: String = words.map(|word| format!("{word:?} ")).collect();
        identity.push_str(self.version.trim());
        identity
    }

    /// Returns whether `tool` is what errors call it.
    pub fn is_called(&self, tool: &str) -> bool {
        self.program.to_string_lossy() == tool
    }

    /// Runs it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use crate::tool::ToolError;

    /// Returns the compiler that `$CXX` names when it is `words`.
    fn named(words: &str) -> Result<Compiler, VerilatedError> {
        Compiler::named(OsStr::new(words)).unwrap()
    }

    /// A directory with a shell script in it, `compiler`.
    fn with_script(script: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("compiler");
        super::super::tests::write_script(&path, script);
        (directory, path)
    }

    #[test]
    fn what_is_behind_blanks_are_arguments() {
        let (_directory, path) = with_script("echo \"$*, of $0\"");
        let compiler = named(&format!(" sh  {} -m64", path.display())).unwrap();
        assert_eq!(compiler.program, "sh");
        assert_eq!(compiler.arguments, [path.as_os_str(), OsStr::new("-m64")]);
        assert_eq!(
            compiler.version,
            format!("-m64 --version, of {}\n", path.display())
        );
        assert!(compiler.identity().contains("-m64"));
        assert!(Compiler::named(OsStr::new(" ")).is_none());
    }

    #[test]
    fn the_error_of_a_named_compiler_is_its_own() {
        let (_directory, path) = with_script("echo error: no licence >&2; exit 1");
        let error = named(&path.to_string_lossy()).unwrap_err();
        let failed = format!("{} failed: error: no licence", path.display());
        assert_eq!(error.to_string(), failed);
        let error = named("no-such-compiler c++").unwrap_err();
        let missing = matches!(&error, VerilatedError::Tool(ToolError::Missing(name)) if name == "no-such-compiler");
        assert!(missing, "{error}");
    }

    #[test]
    fn a_relative_path_is_one_from_here() {
        let (directory, path) = with_script("echo here");
        let here = std::env::current_dir().unwrap();
        let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
        let compiler = named(&up.join(path.strip_prefix("/").unwrap()).to_string_lossy()).unwrap();
        let elsewhere = directory.path().join("a/b/c/d/e/f/g/h/i/j");
        std::fs::create_dir_all(&elsewhere).unwrap();
        let said = tool::stdout(compiler.command().current_dir(&elsewhere)).unwrap();
        assert_eq!(said, "here\n");
    }
}
