//! A subscription's items, read one by one as they are asked for: what nobody reads stays in the daemon's log.

use super::error::ClientError;
use super::wire::Wire;
use crate::RpcError;
use jsonrpsee::types::ErrorObjectOwned;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::marker::PhantomData;

/// A running subscription, with the connection to itself.
#[derive(Debug)]
pub struct Frames<T> {
    wire: Wire,
    notification: &'static str,
    id: Value,
    over: bool,
    items: PhantomData<fn() -> T>,
}

#[derive(Deserialize)]
struct Notification<'a> {
    subscription: Value,
    #[serde(default, borrow)]
    result: Option<&'a serde_json::value::RawValue>,
    #[serde(default)]
    error: Option<Value>,
}

impl<T: DeserializeOwned> Frames<T> {
    pub(super) fn new(wire: Wire, notification: &'static str, id: Value) -> Self {
        Self {
            wire,
            notification,
            id,
            over: false,
            items: PhantomData,
        }
    }

    /// The next item. An error is the last thing that comes ([`ClientError::Lost`] when the connection ended), then `None`.
    /// Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<T, ClientError>> {
        if self.over {
            return None;
        }
        let item = self.read().await;
        self.over = item.is_err();
        Some(item)
    }

    async fn read(&mut self) -> Result<T, ClientError> {
        loop {
            let message = self.wire.message().await?;
            if message.method.as_deref() != Some(self.notification) {
                continue;
            }
            let params = message.params.map_or("null", |params| params.get());
            let notification: Notification<'_> = serde_json::from_str(params).map_err(|error| malformed(&error))?;
            if notification.subscription != self.id {
                continue;
            }
            return match (notification.result, notification.error) {
                (Some(item), _) => serde_json::from_str(item.get()).map_err(|error| malformed(&error)),
                (None, error) => Err(ended(error)),
            };
        }
    }
}

fn malformed(error: &serde_json::Error) -> ClientError {
    ClientError::Malformed(error.to_string())
}

/// The daemon ended the subscription with an error: an object as in answers, or a plain text.
fn ended(error: Option<Value>) -> ClientError {
    match error {
        Some(Value::String(text)) => ClientError::Malformed(text),
        Some(value) => match serde_json::from_value::<ErrorObjectOwned>(value) {
            Ok(error) => ClientError::Rpc(RpcError::from(&error)),
            Err(error) => malformed(&error),
        },
        None => ClientError::Lost,
    }
}
