//! A whole output, read page by page.

use crate::failure::Failure;
use protocol::SessionId;
use protocol::client::Client;
use protocol::event::BlobRef;
use protocol::method::{BlobGet, BlobGetParams};

/// Reads the blob, handing each page to `take` as it comes.
pub(crate) async fn read(
    client: &mut Client,
    session: &SessionId,
    blob: &BlobRef,
    mut take: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut next = Some(0);
    while let Some(offset) = next {
        let params = BlobGetParams {
            session: session.0.clone(),
            hash: blob.hash.clone(),
            offset,
            limit: None,
        };
        let page = client.call::<BlobGet>(&params).await?;
        take(&page.text)?;
        // A page that does not get on would be asked for again and again.
        next = page.next.filter(|next| *next > offset);
    }
    Ok(())
}
