//! The file a first start leaves behind: every setting with its meaning, all of it commented out.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::error::ConfigError;

const TEMPLATE: &str = include_str!("template.toml");

/// The template with its settings in force: what is commented out shows a default or an example.
pub(super) fn uncommented() -> String {
    // Settings are commented without a blank after the mark, explanations with one.
    let uncomment = |line: &'static str| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => setting,
        _ => line,
    };
    TEMPLATE.lines().map(uncomment).collect::<Vec<_>>().join("\n")
}

/// Writes the template to `path` if nothing is there, for the owner alone.
///
/// # Errors
/// The directory or the file cannot be made. A daemon can start without.
pub fn write_template(path: &Path) -> Result<(), ConfigError> {
    write(path).or_else(|error| match error.kind() {
        ErrorKind::AlreadyExists => Ok(()),
        _ => Err(ConfigError::Unwritable {
            path: path.to_path_buf(),
            reason: error.to_string(),
        }),
    })
}

fn write(path: &Path) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(TEMPLATE.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::{Config, load, parse};
    use super::*;

    #[test]
    fn the_template_changes_nothing() -> anyhow::Result<()> {
        let config = parse(Path::new("/c/config.toml"), TEMPLATE)?;
        let defaults = Config::defaults("/c/config.toml".into());
        assert!(config.models.is_empty() && config.default_model.is_none());
        assert_eq!(
            (config.session, config.daemon, config.limits),
            (defaults.session, defaults.daemon, defaults.limits)
        );
        Ok(())
    }

    #[test]
    fn what_the_template_shows_is_valid_and_names_the_defaults() -> anyhow::Result<()> {
        let config = parse(Path::new("/c/config.toml"), &uncommented())?;
        let defaults = Config::defaults("/c/config.toml".into());
        assert_eq!(config.models.len(), 5);
        assert_eq!(config.default_model.as_deref(), Some("sonnet"));
        let limits = super::super::GlobalLimits {
            cost_per_session_usd: Some(5.0),
            cost_per_day_usd: Some(20.0),
            ..defaults.limits
        };
        assert_eq!((config.daemon, config.limits), (defaults.daemon, limits));
        assert_eq!(config.session.limits, defaults.session.limits);
        assert_eq!(
            (config.session.mode, config.session.resume),
            (defaults.session.mode, defaults.session.resume)
        );
        Ok(())
    }

    #[test]
    fn a_file_that_is_there_stays() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("agentd/config.toml");
        write_template(&path)?;
        assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o7777, 0o600);
        load(&path)?;
        std::fs::write(&path, "# mine")?;
        write_template(&path)?;
        assert_eq!(std::fs::read_to_string(&path)?, "# mine");
        Ok(())
    }
}
