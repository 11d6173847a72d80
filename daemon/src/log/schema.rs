//! The schema: numbered migrations that only go forward. A database that is not new is copied aside first, with SQLite's
//! backup API, so that a migration that went wrong costs nothing.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use rusqlite_migration::Migrations;

use super::error::LogError;
use super::files;

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../migrations");

/// Pages copied per step of a backup; nobody else uses the database yet, so a step may be long.
const BACKUP_PAGES: std::ffi::c_int = 4096;

/// All migrations of this binary, oldest first.
pub(super) fn migrations() -> Result<Migrations<'static>, rusqlite_migration::Error> {
    Migrations::from_directory(&FILES)
}

/// Schema version this binary writes: the number of its migrations.
pub(super) fn latest() -> u64 {
    FILES.dirs().count() as u64
}

/// Brings the database to this binary's schema.
///
/// # Errors
/// A newer schema, no room for the backup, or a migration that fails (the database is then as it was).
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), LogError> {
    let found = version(connection)?;
    let known = latest();
    if found > known {
        return Err(LogError::NewerSchema {
            path: path.to_path_buf(),
            found,
            known,
        });
    }
    if found == known {
        return Ok(());
    }
    if found > 0 {
        back_up(connection, path, found)?;
    }
    let outcome = migrations().and_then(|all| all.to_latest(connection));
    outcome.map_err(|error| LogError::open(path, format_args!("migrating schema {found} to {known}: {error}")))
}

/// Schema version of the database, 0 for an empty one.
pub(super) fn version(connection: &Connection) -> Result<u64, LogError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Where the copy of the database of schema `version` goes.
pub(super) fn backup_path(path: &Path, version: u64) -> PathBuf {
    path.with_extension(format!("db.schema-{version}.backup"))
}

/// Copies the database aside. The copy gets its name only when it is whole.
fn back_up(connection: &Connection, path: &Path, version: u64) -> Result<(), LogError> {
    let needed = size(connection)?;
    let free = files::free_bytes(path)?;
    if free < needed {
        return Err(LogError::NoRoomForBackup {
            path: path.to_path_buf(),
            needed,
            free,
        });
    }
    let target = backup_path(path, version);
    let partial = target.with_extension("partial");
    files::create_anew(&partial)?;
    copy(connection, &partial).map_err(|error| LogError::open(&partial, error))?;
    files::sync(&partial)?;
    std::fs::rename(&partial, &target).map_err(|error| LogError::open(&target, error))
}

fn size(connection: &Connection) -> Result<u64, LogError> {
    let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let page_bytes: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(pages * page_bytes)
}

fn copy(from: &Connection, to: &Path) -> Result<(), rusqlite::Error> {
    let mut to = Connection::open(to)?;
    {
        let backup = Backup::new(from, &mut to)?;
        while backup.step(BACKUP_PAGES)? != StepResult::Done {}
    }
    // The copy says "WAL" as its source does; as a plain file it needs no companions.
    to.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
}
