//! Large outputs, stored once by the SHA-256 of their bytes and kept as long as a session refers to them.

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::error::LogError;
use super::rows::SessionKey;

/// Largest blob. Whole tool outputs end at 1 MiB, images at the size of a message.
pub const BLOB_BYTES: usize = 16 * 1024 * 1024;

/// The only way blobs are stored so far: as they are.
const CODEC_PLAIN: u8 = 0;

/// SHA-256 of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlobHash([u8; 32]);

impl BlobHash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads the 64 hex digits that events and clients carry.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'))?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(hash))
    }
}

impl std::fmt::Display for BlobHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Stores a blob and the session's reference to it; both may be there already.
pub(super) fn put(connection: &Connection, session: SessionKey, hash: &BlobHash, data: &[u8]) -> Result<(), LogError> {
    let known = connection
        .prepare_cached("SELECT 1 FROM sessions WHERE n = ?1")?
        .exists([session.0])?;
    if !known {
        return Err(LogError::NoSession);
    }
    let sql = "INSERT OR IGNORE INTO blobs (hash, bytes, codec, data) VALUES (?1, ?2, ?3, ?4)";
    connection
        .prepare_cached(sql)?
        .execute(params![hash.0, data.len(), CODEC_PLAIN, data])?;
    let sql = "INSERT OR IGNORE INTO blob_refs (session, hash) VALUES (?1, ?2)";
    connection.prepare_cached(sql)?.execute(params![session.0, hash.0])?;
    Ok(())
}

/// A part of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobPart {
    /// Size of the whole blob.
    pub bytes: u64,
    /// What was asked for of it; less or nothing at and behind its end.
    pub data: Vec<u8>,
}

/// At most `limit` bytes from `offset` on of a blob that the session refers to.
pub(super) fn part(
    connection: &Connection,
    session: SessionKey,
    hash: &BlobHash,
    offset: u64,
    limit: u64,
) -> Result<Option<BlobPart>, LogError> {
    let place = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let sql = "SELECT b.bytes, substr(b.data, ?4, ?5) FROM blob_refs r JOIN blobs b ON b.hash = r.hash
               WHERE r.session = ?1 AND r.hash = ?2 AND b.codec = ?3";
    let mut statement = connection.prepare_cached(sql)?;
    // The first byte is number 1.
    let asked = params![
        session.0,
        hash.0,
        CODEC_PLAIN,
        place(offset).saturating_add(1),
        place(limit)
    ];
    let part = |row: &rusqlite::Row<'_>| {
        Ok(BlobPart {
            bytes: row.get(0)?,
            data: row.get(1)?,
        })
    };
    Ok(statement.query_row(asked, part).optional()?)
}
