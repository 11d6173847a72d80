//! `agentctl mode`: what a session asks before it acts; shown, or set from now on.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::values::{ModeFor, default_session, mode_for};
use protocol::method::{SessionUpdate, UpdateParams};
use protocol::{Time, wording};

#[derive(Debug, clap::Args)]
#[command(override_usage = "agentctl mode [SESSION] [ask|edits|all|none|DURATION]")]
pub(crate) struct Arguments {
    /// Session (`AGENTD_SESSION`, else `last`, if absent), then the mode (shown if absent); `10m` allows all for ten minutes
    #[arg(value_name = "[SESSION] MODE", num_args = 0..=2)]
    words: Vec<String>,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let (session, mode) = meant(&arguments.words)?;
    let session = session.map_or_else(default_session, str::to_owned);
    let mut client = invocation.connect().await?;
    let mut session = invocation.session(&mut client, &session).await?;
    if let Some(mode) = mode {
        let params = UpdateParams {
            session: session.id.0.clone(),
            mode: Some(mode.mode),
            mode_for_ms: mode.for_ms,
            ..UpdateParams::default()
        };
        session = client.call::<SessionUpdate>(&params).await?;
    }
    let words = wording::mode_left(session.mode, session.mode_until, Time::now());
    invocation.output.line(&words)?;
    Ok(Exit::Completed)
}

/// One word is a mode if it is one, else a session.
fn meant(words: &[String]) -> Result<(Option<&str>, Option<ModeFor>), Failure> {
    let mode = |word: &str| mode_for(word).ok();
    match words {
        [] => Ok((None, None)),
        [word] => Ok(mode(word).map_or((Some(word.as_str()), None), |mode| (None, Some(mode)))),
        [session, word, ..] => match mode(word) {
            Some(mode) => Ok((Some(session), Some(mode))),
            None => Err(Failure::usage(format!(
                "`{word}` is no mode\nhint: use ask, edits, all, none, or a time such as `10m` for which all is allowed"
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::meant;
    use protocol::Mode;

    /// Session, mode, and for how long.
    type Read = (String, Option<(Mode, Option<u64>)>);

    fn read(words: &[&str]) -> Option<Read> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        meant(&words).ok().map(|(session, mode)| {
            (
                session.unwrap_or("(default)").to_owned(),
                mode.map(|mode| (mode.mode, mode.for_ms)),
            )
        })
    }

    #[test]
    fn one_word_is_a_mode_or_else_a_session() {
        assert_eq!(read(&[]), Some(("(default)".to_owned(), None)));
        assert_eq!(read(&["all"]), Some(("(default)".to_owned(), Some((Mode::All, None)))));
        assert_eq!(
            read(&["10m"]),
            Some(("(default)".to_owned(), Some((Mode::All, Some(600_000)))))
        );
        assert_eq!(read(&["fix"]), Some(("fix".to_owned(), None)));
        assert_eq!(read(&["all", "ask"]), Some(("all".to_owned(), Some((Mode::Ask, None)))));
        assert_eq!(read(&["fix", "always"]), None);
    }
}
