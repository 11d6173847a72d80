//! A model call with a key that the provider may refuse. A refused key is forgotten, so that the next call reads it anew; with a login it
//! is renewed and the call made once more, since a provider may end a token whenever it likes.

use std::sync::Arc;

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};

use super::refused;
use crate::auth::Keys;
use crate::config::profile::{KeySource, Profile};
use crate::provider::{Class, Http, ItemKind, ModelError, ModelReply, ModelRequest, Origin, Provider, Sink, connect};

/// A provider with the key it is called with.
pub(super) struct Renewed {
    profile: Profile,
    key: Option<SecretString>,
    provider: Arc<dyn Provider>,
    keys: Arc<Keys>,
    http: Http,
}

impl Renewed {
    /// The provider of `profile`, with its key.
    ///
    /// # Errors
    /// No key, or an address that may not be used.
    pub(super) async fn new(profile: Profile, keys: Arc<Keys>, http: Http) -> Result<Self, ModelError> {
        let key = keys.key(&profile).await.map_err(|error| refused(&error))?;
        let provider = connect(&profile, key.clone(), &http)?;
        Ok(Self {
            profile,
            key,
            provider,
            keys,
            http,
        })
    }

    /// Tells the keys that the provider did not take this one.
    fn forget(&self, key: Option<&SecretString>) {
        if let Some(key) = key {
            self.keys.forget(&self.profile, key);
        }
    }

    /// The key that takes the place of the refused one; `None` where there is no other.
    async fn another(&self) -> Result<Option<SecretString>, ModelError> {
        if !matches!(self.profile.key, KeySource::Login(_)) {
            return Ok(None);
        }
        let key = self.keys.key(&self.profile).await.map_err(|error| refused(&error))?;
        let text = |key: &Option<SecretString>| key.as_ref().map(|key| key.expose_secret().to_owned());
        Ok(key.filter(|key| Some(key.expose_secret()) != text(&self.key).as_deref()))
    }
}

#[async_trait]
impl Provider for Renewed {
    fn origin(&self) -> Origin {
        self.provider.origin()
    }

    async fn call(&self, request: &ModelRequest, sink: &mut dyn Sink) -> Result<ModelReply, ModelError> {
        let mut watched = Watched { sink, opened: false };
        let error = match self.provider.call(request, &mut watched).await {
            Err(error) if error.class == Class::Authentication => error,
            ended => return ended,
        };
        self.forget(self.key.as_ref());
        if watched.opened {
            // Part of a reply is shown; another would be joined to it.
            return Err(error);
        }
        let Some(key) = self.another().await? else {
            return Err(error);
        };
        tracing::info!(
            profile = self.profile.name,
            "the provider refused a token, which was renewed"
        );
        let again = connect(&self.profile, Some(key.clone()), &self.http)?;
        let ended = again.call(request, watched.sink).await;
        if ended.as_ref().is_err_and(|error| error.class == Class::Authentication) {
            self.forget(Some(&key));
        }
        ended
    }
}

/// Notes whether anything of a reply has come.
struct Watched<'a> {
    sink: &'a mut dyn Sink,
    opened: bool,
}

impl Sink for Watched<'_> {
    fn open(&mut self, item: usize, kind: ItemKind) {
        self.opened = true;
        self.sink.open(item, kind);
    }

    fn push(&mut self, item: usize, text: &str) {
        self.sink.push(item, text);
    }
}
