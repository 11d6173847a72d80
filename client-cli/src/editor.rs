//! The person's editor: a text goes in, the text they leave comes out.

use crate::failure::Failure;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

/// Has the person edit `text`; the name of the file they see ends in `ending`.
pub(crate) fn edited(text: &str, ending: &str) -> Result<String, Failure> {
    let path = std::env::temp_dir().join(format!("agentctl-{}{ending}", uuid::Uuid::new_v4()));
    let failed = |error: std::io::Error| Failure::error(format!("cannot edit {}: {error}", path.display()));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(failed)?;
    let written = file.write_all(text.as_bytes()).map_err(failed);
    let result = written
        .and_then(|()| open(&path))
        .and_then(|()| std::fs::read_to_string(&path).map_err(failed));
    let _ = std::fs::remove_file(&path);
    result
}

/// Opens `path` in `$VISUAL`, else `$EDITOR`, else `vi`, and waits until the person is done.
pub(crate) fn open(path: &Path) -> Result<(), Failure> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = set("VISUAL")
        .or_else(|| set("EDITOR"))
        .unwrap_or_else(|| "vi".to_owned());
    // Through a shell, as git does it: the variable may hold options.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(path)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::error(format!(
            "the editor `{editor}` ended with {status}; nothing was changed"
        ))),
        Err(error) => Err(Failure::error(format!("cannot start the editor `{editor}`: {error}"))),
    }
}
