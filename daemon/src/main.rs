//! Entry of `agentd`: the exec-guard first, since a guard must cost nothing, then the daemon.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = daemon::target::exec_guard(std::env::args_os()) {
        return code;
    }
    ExitCode::SUCCESS
}
