//! placeholder
#[derive(Debug)]
pub struct Log;
