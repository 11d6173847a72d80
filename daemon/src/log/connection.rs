//! Opening connections, each with the same pragmas: how durable, how patient, how much memory.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::LogError;
use super::{files, schema};

/// Marks a SQLite file as ours: "agnt".
const APPLICATION_ID: i64 = 0x6167_6e74;

/// How long a connection waits for another's lock; only an outside program can hold one this long.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Page cache of the writer in KiB, SQLite's default.
const WRITER_CACHE_KIB: i64 = 2000;

/// Page cache of each reader in KiB: pages come from the kernel's cache anyway, and an idle daemon must stay small.
const READER_CACHE_KIB: i64 = 512;

/// Bytes the WAL file keeps after it was written back.
const WAL_KEEP_BYTES: i64 = 16 * 1024 * 1024;

/// Statements kept prepared by each connection; above the number of distinct statements in this module.
const STATEMENTS: usize = 64;

/// Makes or opens the database in `dir` and brings it to this binary's schema.
pub(super) fn open_database(dir: &Path, path: &Path) -> Result<Connection, LogError> {
    files::make_dir(dir)?;
    files::refuse_network(dir)?;
    files::create_private(path)?;
    let mut connection = connect(path)?;
    claim(&connection, path)?;
    set_up_writer(&connection)?;
    schema::migrate(&mut connection, path)?;
    Ok(connection)
}

/// Opens the database again after a failure, for the writer.
pub(super) fn open_writer(path: &Path) -> Result<Connection, LogError> {
    let connection = connect(path)?;
    if application_id(&connection)? != APPLICATION_ID {
        return Err(LogError::NotOurs {
            path: path.to_path_buf(),
        });
    }
    set_up_writer(&connection)?;
    Ok(connection)
}

/// Opens a connection that cannot write.
pub(super) fn open_reader(path: &Path) -> Result<Connection, LogError> {
    let connection = connect(path)?;
    set_up(&connection, READER_CACHE_KIB)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(path: &Path) -> Result<Connection, LogError> {
    // Never CREATE: the file was made with its mode, and one that vanished must not come back empty.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| LogError::open(path, error))?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Marks an empty file as ours; refuses a file that is somebody else's.
fn claim(connection: &Connection, path: &Path) -> Result<(), LogError> {
    let not_ours = || LogError::NotOurs {
        path: path.to_path_buf(),
    };
    let id = application_id(connection).map_err(|error| match error {
        LogError::Storage {
            fault: super::StorageFault::Corrupt,
            ..
        } => not_ours(),
        other => other,
    })?;
    let tables: u64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (id, tables) {
        (APPLICATION_ID, _) => Ok(()),
        (0, 0) => {
            // Both must be set before the first table exists.
            connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
            connection.pragma_update(None, "application_id", APPLICATION_ID)?;
            Ok(())
        }
        _ => Err(not_ours()),
    }
}

fn application_id(connection: &Connection) -> Result<i64, LogError> {
    Ok(connection.pragma_query_value(None, "application_id", |row| row.get(0))?)
}

fn set_up_writer(connection: &Connection) -> Result<(), LogError> {
    set_up(connection, WRITER_CACHE_KIB)?;
    // The writer decides itself when to write the WAL back.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", WAL_KEEP_BYTES, |_| Ok(()))?;
    Ok(())
}

fn set_up(connection: &Connection, cache_kib: i64) -> Result<(), LogError> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS only fullfsync reaches the disk; elsewhere it changes nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // What is deleted in a page is overwritten; whole pages that become free are given back to the file system by a purge.
    connection.pragma_update_and_check(None, "secure_delete", "FAST", |_| Ok(()))?;
    // Negative: KiB instead of pages.
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    Ok(())
}
