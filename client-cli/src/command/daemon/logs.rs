//! `agentctl daemon logs`: the daemon's own log, read from its file, so that it can be seen when the daemon does not run.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::LOOK_EVERY;
use crate::invocation::Invocation;
use protocol::place;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How much of the file's end is looked at; lines before it are not shown.
const TAIL_BYTES: u64 = 4 * 1024 * 1024;

pub(super) async fn run(invocation: &Invocation, lines: usize, follow: bool) -> Result<Exit, Failure> {
    let directory = place::log_dir(&place::state_dir()?);
    let Some(path) = newest(&directory) else {
        let message = format!(
            "there is no log in {}\nhint: agentd has not run yet",
            directory.display()
        );
        return Err(Failure::error(message));
    };
    let failed = |error: std::io::Error| Failure::reading(path.display(), &error);
    let mut file = File::open(&path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))
        .map_err(failed)?;
    let text = read(&mut file).map_err(failed)?;
    print(invocation, last(&text, lines))?;
    if !follow {
        return Ok(Exit::Completed);
    }
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let text = read(&mut file).map_err(failed)?;
        print(invocation, &text)?;
    }
}

/// What is there from where the file stands. A log may hold a cut character at the place reading began.
fn read(file: &mut File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn print(invocation: &Invocation, text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    invocation.output.write(&invocation.output.block(text))
}

/// The last `count` lines of `text`.
fn last(text: &str, count: usize) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let begin = match count.checked_sub(1) {
        None => text.len(),
        Some(before) => body.rmatch_indices('\n').nth(before).map_or(0, |(at, _)| at + 1),
    };
    text.get(begin..).unwrap_or_default()
}

/// The log file that was written to last.
fn newest(directory: &Path) -> Option<PathBuf> {
    let written = |path: &PathBuf| {
        path.metadata()
            .and_then(|data| data.modified())
            .unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let files = std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()));
    files.filter(|path| path.is_file()).max_by_key(written)
}

#[cfg(test)]
mod tests {
    use super::last;

    #[test]
    fn the_last_lines_are_counted_from_the_end() {
        let text = "one\ntwo\nthree\n";
        assert_eq!(last(text, 0), "");
        assert_eq!(last(text, 1), "three\n");
        assert_eq!(last(text, 2), "two\nthree\n");
        assert_eq!(last(text, 9), text);
        assert_eq!(last("", 3), "");
    }
}
