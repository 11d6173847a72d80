//! What is sent: the words of the command line, stdin where it belongs, images.

use crate::failure::Failure;
use base64::Engine;
use protocol::Content;
use rustix::fs::FileType;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longest text or image that is sent, in bytes: with base64 and JSON's escapes it must fit a message of 16 MiB.
const CONTENT_BYTES: u64 = 10 * 1024 * 1024;

/// The pieces of the input.
pub(super) fn content(words: &[String], stdin: bool, images: &[PathBuf]) -> Result<Vec<Content>, Failure> {
    let text = text(words, stdin, !images.is_empty())?;
    let mut content = Vec::new();
    if !text.is_empty() {
        content.push(Content::text(text));
    }
    for file in images {
        content.push(image(file)?);
    }
    if content.is_empty() {
        return Err(Failure::usage(
            "nothing to send\nhint: `agentctl send TEXT`, or `… | agentctl send -`",
        ));
    }
    Ok(content)
}

/// The words with stdin in its place: at `-`, at the end with `--stdin`, or alone where there are no words and it is a pipe or a
/// file. Elsewhere stdin is left alone: reading one that nobody closes would never end.
fn text(words: &[String], stdin: bool, other_content: bool) -> Result<String, Failure> {
    let dashes = words.iter().filter(|word| *word == "-").count() + usize::from(stdin);
    let implied = words.is_empty() && dashes == 0 && !other_content && stdin_has_content();
    match (dashes, implied) {
        (0, false) => Ok(words.join(" ")),
        (0, true) => read_stdin(),
        (1, _) => Ok(assemble(words, &read_stdin()?)),
        _ => Err(Failure::usage("stdin is asked for more than once")),
    }
}

/// Words are joined by blanks; stdin stands on lines of its own.
fn assemble(words: &[String], stdin: &str) -> String {
    let mut parts = words.split(|word| word == "-").map(|part| part.join(" "));
    let before = parts.next().unwrap_or_default();
    let after = parts.next().unwrap_or_default();
    let all = [before.as_str(), stdin, after.as_str()];
    let shown: Vec<&str> = all.into_iter().filter(|part| !part.is_empty()).collect();
    shown.join("\n")
}

/// Whether stdin is a pipe, a file or a socket, rather than a terminal or `/dev/null`.
fn stdin_has_content() -> bool {
    rustix::fs::fstat(rustix::stdio::stdin())
        .map(|stat| FileType::from_raw_mode(stat.st_mode))
        .is_ok_and(|kind| matches!(kind, FileType::Fifo | FileType::RegularFile | FileType::Socket))
}

fn read_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(CONTENT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::reading("stdin", &error))?;
    check_size("stdin", bytes.len() as u64)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

fn check_size(what: &str, bytes: u64) -> Result<(), Failure> {
    if bytes <= CONTENT_BYTES {
        return Ok(());
    }
    Err(Failure::error(format!(
        "{what} holds more than 10 MiB\nhint: put it into a file of the project and name that in the text"
    )))
}

fn image(file: &Path) -> Result<Content, Failure> {
    let failed = |error: std::io::Error| Failure::reading(file.display(), &error);
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(failed)?;
    opened.take(CONTENT_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    check_size(&file.display().to_string(), bytes.len() as u64)?;
    let Some(media_type) = media_type(&bytes) else {
        return Err(Failure::error(format!(
            "{} is no image that models take\nhint: use PNG, JPEG, GIF or WebP",
            file.display()
        )));
    };
    Ok(Content::Image {
        media_type: media_type.to_owned(),
        data: base64::engine::general_purpose::STANDARD.encode(&bytes),
    })
}

/// What an image is, by its first bytes; its name may say anything.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let riff = bytes.strip_prefix(b"RIFF").and_then(|rest| rest.get(4..8));
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        _ if riff == Some(b"WEBP") => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{assemble, media_type};

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn stdin_stands_where_the_dash_does() {
        assert_eq!(assemble(&words("review this: -"), "diff"), "review this:\ndiff");
        assert_eq!(assemble(&words("- is it right?"), "diff"), "diff\nis it right?");
        assert_eq!(assemble(&words("-"), "diff"), "diff");
        assert_eq!(
            assemble(&words("review this:"), "diff"),
            "review this:\ndiff",
            "--stdin adds it at the end"
        );
        assert_eq!(assemble(&words("a -"), ""), "a");
    }

    #[test]
    fn an_image_is_known_by_its_bytes() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(media_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(media_type(b"RIFF\x10\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"<svg/>"), None);
        assert_eq!(media_type(b"RIFF"), None);
    }
}
