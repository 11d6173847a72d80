//! `blob.get`: outputs that are too long for their events, in parts. What is stored is without keys already.

use super::Api;
use super::client::Client;
use crate::log::BlobHash;
use crate::session::storage;
use protocol::method::{BLOB_PAGE_BYTES, BlobGetParams, BlobPage};
use protocol::{ErrorKind, RpcError};
use std::sync::Arc;

/// Bytes of the longest character: less would not get a reader on.
const LEAST_BYTES: u64 = 4;

pub(super) async fn get(api: Arc<Api>, _: Arc<Client>, params: BlobGetParams) -> Result<BlobPage, RpcError> {
    let row = api.find(&params.session, None).await?;
    let hash = BlobHash::parse(&params.hash).ok_or_else(|| {
        RpcError::new(
            ErrorKind::InvalidParams,
            "`hash` is not the 64 hex digits that an event's `blob` holds",
        )
    })?;
    let limit = params
        .limit
        .unwrap_or(BLOB_PAGE_BYTES)
        .clamp(LEAST_BYTES, BLOB_PAGE_BYTES);
    let log = &api.registry.deps().log;
    let part = log.blob_part(row.key, hash, params.offset, limit).await;
    let part = part
        .map_err(|error| storage(&error))?
        .ok_or_else(|| RpcError::new(ErrorKind::BlobNotFound, "the session has no output of this hash"))?;
    let end = |taken: usize| params.offset.saturating_add(taken as u64);
    let reaches_the_end = end(part.data.len()) >= part.bytes;
    let mut data = part.data.as_slice();
    if !reaches_the_end {
        data = data.get(..whole_characters(data)).unwrap_or(data);
    }
    Ok(BlobPage {
        bytes: part.bytes,
        text: String::from_utf8_lossy(data).into_owned(),
        next: (!reaches_the_end).then(|| end(data.len())),
    })
}

/// Bytes of `data` without a character at its end whose rest is not there.
fn whole_characters(data: &[u8]) -> usize {
    match std::str::from_utf8(data) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // What is no text at all is cut anywhere.
        _ => data.len(),
    }
}
