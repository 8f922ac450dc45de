//! The command: parses, runs, ends with the documented exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    walprobe::main()
}
