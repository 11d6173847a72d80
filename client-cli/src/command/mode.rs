//! `agentctl mode`: what a session asks before it acts; shown, or set from now on.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::values::ModeWord;
use clap::ValueEnum;
use protocol::method::{SessionUpdate, UpdateParams};
use protocol::wording;

#[derive(Debug, clap::Args)]
#[command(override_usage = "agentctl mode [SESSION] [ask|edits|all|none]")]
pub(crate) struct Arguments {
    /// Session (`last` if absent), then the mode (shown if absent)
    #[arg(value_name = "[SESSION] MODE", num_args = 0..=2)]
    words: Vec<String>,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let (session, mode) = meant(&arguments.words)?;
    let mut client = invocation.connect().await?;
    let mut session = invocation.session(&mut client, session).await?;
    if let Some(mode) = mode {
        let params = UpdateParams {
            session: session.id.0.clone(),
            mode: Some(mode.into()),
            ..UpdateParams::default()
        };
        session = client.call::<SessionUpdate>(&params).await?;
    }
    invocation.output.line(wording::mode(session.mode))?;
    Ok(Exit::Completed)
}

/// One word is a mode if it is one, else a session.
fn meant(words: &[String]) -> Result<(&str, Option<ModeWord>), Failure> {
    let mode = |word: &str| ModeWord::from_str(word, true).ok();
    match words {
        [] => Ok(("last", None)),
        [word] => Ok(mode(word).map_or((word.as_str(), None), |mode| ("last", Some(mode)))),
        [session, word, ..] => match mode(word) {
            Some(mode) => Ok((session, Some(mode))),
            None => Err(Failure::usage(format!(
                "`{word}` is no mode\nhint: use ask, edits, all or none"
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{ModeWord, meant};

    fn read(words: &[&str]) -> Option<(String, Option<ModeWord>)> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        meant(&words).ok().map(|(session, mode)| (session.to_owned(), mode))
    }

    #[test]
    fn one_word_is_a_mode_or_else_a_session() {
        assert_eq!(read(&[]), Some(("last".to_owned(), None)));
        assert_eq!(read(&["all"]), Some(("last".to_owned(), Some(ModeWord::All))));
        assert_eq!(read(&["fix"]), Some(("fix".to_owned(), None)));
        assert_eq!(read(&["all", "ask"]), Some(("all".to_owned(), Some(ModeWord::Ask))));
        assert_eq!(read(&["fix", "always"]), None);
    }
}
