//! The terminal's modes: raw keys and pasting in one piece while the client runs, everything as it was afterwards, also after
//! a panic.

use crossterm::event::{DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use std::io::{self, IsTerminal};
use std::sync::Once;

/// The terminal in the client's modes; dropping it puts everything back.
#[derive(Debug)]
pub(crate) struct Modes(());

impl Modes {
    /// Switches the terminal over.
    ///
    /// # Errors
    /// What the terminal reports.
    pub(crate) fn enter() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                report(panic);
            }));
        });
        enable_raw_mode()?;
        let modes = Self(());
        execute!(io::stdout(), EnableBracketedPaste, EnableFocusChange)?;
        Ok(modes)
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        restore();
    }
}

/// Everything as a shell expects it. What fails here has no one left to be told.
fn restore() {
    let _ = execute!(io::stdout(), DisableFocusChange, DisableBracketedPaste, cursor::Show);
    let _ = disable_raw_mode();
}

/// Whether keys and screen are there.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Gives the terminal to the shell until this process is continued. The caller has cleared its part of the screen.
///
/// # Errors
/// What the terminal reports.
pub(crate) fn suspend(modes: &mut Option<Modes>) -> io::Result<()> {
    *modes = None;
    // The whole group stops, as if the terminal itself had seen the key.
    rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
    *modes = Some(Modes::enter()?);
    Ok(())
}
