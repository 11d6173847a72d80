//! The user's configuration as it stands now: read again whenever its file, or the catalog beside it, has changed.
//!
//! A file with a mistake does not stop a running daemon: what was read last stays in force, the log says so once, and clients are
//! told for as long as the mistake is there.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::ConfigError;
use super::stamp::Stamp;
use super::{Config, catalog, load};

/// What else must hold of a configuration before it counts.
pub type Check = fn(&Config) -> Result<(), ConfigError>;

/// The configuration, shared by all that follow it.
#[derive(Debug)]
pub struct Book {
    path: PathBuf,
    check: Check,
    read: Mutex<Read>,
}

/// What was read last.
#[derive(Debug)]
struct Read {
    stamps: Stamps,
    config: Arc<Config>,
    fault: Option<ConfigError>,
}

/// Of the file and of the catalog beside it.
type Stamps = [Option<Stamp>; 2];

impl Book {
    /// The configuration at `path`, of which `check` says what else must hold.
    ///
    /// # Errors
    /// A file that cannot be read or says something wrong: a daemon does not start with half of its settings.
    pub fn open(path: &Path, check: Check) -> Result<Self, ConfigError> {
        // Before the reading: a change in between is then read again.
        let stamps = stamps(path);
        let config = load::load(path)?;
        check(&config)?;
        let read = Read {
            stamps,
            config: Arc::new(config),
            fault: None,
        };
        Ok(Self {
            path: path.to_owned(),
            check,
            read: Mutex::new(read),
        })
    }

    /// The configuration file, whether or not it is there.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says now, or said before it was broken. The same value as long as nothing changed.
    #[must_use]
    pub fn now(&self) -> Arc<Config> {
        Arc::clone(&self.fresh().config)
    }

    /// What is wrong with the file as it is now.
    #[must_use]
    pub fn fault(&self) -> Option<ConfigError> {
        self.fresh().fault.clone()
    }

    fn fresh(&self) -> MutexGuard<'_, Read> {
        let mut last = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = stamps(&self.path);
        if stamps != last.stamps {
            last.stamps = stamps;
            match self.read_again() {
                Ok(config) => {
                    tracing::info!(path = %self.path.display(), "the configuration was read again");
                    (last.config, last.fault) = (Arc::new(config), None);
                }
                Err(error) => {
                    tracing::warn!(%error, "the configuration that was read last stays in force");
                    last.fault = Some(error);
                }
            }
        }
        last
    }

    fn read_again(&self) -> Result<Config, ConfigError> {
        let config = load::load(&self.path)?;
        (self.check)(&config)?;
        Ok(config)
    }
}

fn stamps(path: &Path) -> Stamps {
    [Stamp::of(path), Stamp::of(&catalog::file_beside(path))]
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn book(text: &str) -> (tempfile::TempDir, Book) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        let book = Book::open(&path, |config| match config.limits.retries {
            13 => Err(ConfigError::at(
                &config.path,
                "",
                None,
                "an unlucky number".to_owned(),
                None,
            )),
            _ => Ok(()),
        });
        (dir, book.unwrap())
    }

    fn write(book: &Book, text: &str) {
        // Another inode each time: two writes may fall into one tick of the file system's clock.
        super::super::rules::replace(book.path(), text).unwrap();
    }

    #[test]
    fn a_change_counts_at_once_and_nothing_is_read_twice() {
        let (_dir, book) = book("[limits]\nretries = 1\n");
        let first = book.now();
        assert!(Arc::ptr_eq(&first, &book.now()));
        write(&book, "[limits]\nretries = 2\n");
        assert_eq!((first.limits.retries, book.now().limits.retries), (1, 2));
        std::fs::write(
            book.path().with_file_name("models.toml"),
            "[[rule]]\nexact = 'x'\ncontext_tokens = 7\n",
        )
        .unwrap();
        assert!(book.now().catalog.rule("x").is_some());
        std::fs::remove_file(book.path()).unwrap();
        assert_eq!(book.now().limits.retries, 4);
    }

    #[test]
    fn a_mistake_changes_nothing_and_is_told_with_its_line_until_it_is_mended() {
        let (_dir, book) = book("[limits]\nretries = 1\n");
        write(&book, "[limits]\nretries = 2\nretrys = 3\n");
        assert_eq!(book.now().limits.retries, 1);
        assert!(book.fault().unwrap().to_string().contains("config.toml:3"));
        write(&book, "[limits]\nretries = 13\n");
        assert!(book.fault().unwrap().to_string().contains("unlucky"));
        write(&book, "[limits]\nretries = 5\n");
        assert_eq!((book.now().limits.retries, book.fault()), (5, None));
    }
}
