//! The tokens of one login, shared by its profiles: read once, renewed before their end by one request however many calls wait, and kept
//! before any of these calls goes on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use jiff::Timestamp;
use oauth2::basic::BasicTokenResponse;
use secrecy::SecretString;

use super::client::{Client, RenewalError, TokenHttp};
use super::error::LoginError;
use super::store::Store;
use super::tokens::{Standing, Tokens};
use crate::auth::redact::Redactor;
use crate::config::login::{Login, LoginId};

/// One login and its tokens. Clones share them.
#[derive(Clone)]
pub(super) struct Account(Arc<Inner>);

struct Inner {
    id: LoginId,
    /// In the order of their names.
    profiles: Vec<String>,
    login: Arc<Login>,
    client: Client,
    store: Store,
    redactor: Redactor,
    /// Shared with the account of an earlier configuration.
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Whether what was kept has been read.
    read: bool,
    tokens: Option<Tokens>,
    /// Counts changes of `tokens`: what began before a change must not undo it.
    version: u64,
    renewal: Option<Renewal>,
}

/// A renewal under way. It runs by itself: a refresh token is often good for one use, so its answer must not be lost with the call
/// that asked for it.
type Renewal = Shared<BoxFuture<'static, Result<(), AccessError>>>;

/// Why there is no access token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AccessError {
    /// Nobody has logged in, or the login is over.
    LoggedOut,
    /// The tokens cannot be read or renewed.
    Failed(LoginError),
}

impl Account {
    pub(super) fn new(
        login: Arc<Login>,
        profiles: Vec<String>,
        http: Arc<dyn TokenHttp>,
        store: Store,
        redactor: Redactor,
    ) -> Self {
        Self(Arc::new(Inner {
            id: login.id(),
            profiles,
            client: Client::new(Arc::clone(&login), http),
            login,
            store,
            redactor,
            state: Arc::default(),
        }))
    }

    /// The same account as another configuration describes it.
    pub(super) fn with(&self, login: Arc<Login>, profiles: Vec<String>) -> Self {
        let Inner {
            client,
            store,
            redactor,
            state,
            ..
        } = &*self.0;
        Self(Arc::new(Inner {
            id: login.id(),
            profiles,
            client: client.of(Arc::clone(&login)),
            login,
            store: store.clone(),
            redactor: redactor.clone(),
            state: Arc::clone(state),
        }))
    }

    pub(super) fn profiles(&self) -> &[String] {
        &self.0.profiles
    }

    pub(super) fn login(&self) -> &Arc<Login> {
        &self.0.login
    }

    pub(super) fn client(&self) -> &Client {
        &self.0.client
    }

    /// Where its tokens are kept, for people.
    pub(super) fn kept_at(&self) -> String {
        self.0.store.describe(self.0.login.store)
    }

    /// A token to call with, renewed if that is due.
    ///
    /// # Errors
    /// As `AccessError` says.
    pub(super) async fn access(&self) -> Result<SecretString, AccessError> {
        self.read().await.map_err(AccessError::Failed)?;
        let (renewal, present) = match self.due()? {
            Due::No(access) => return Ok(access),
            Due::Yes { renewal, present } => (renewal, present),
        };
        match renewal.await {
            Ok(()) => self.present().ok_or(AccessError::LoggedOut),
            // What is due may still hold for a while.
            Err(AccessError::Failed(error)) if error.passes() && present.is_some() => {
                tracing::warn!(%error, "a login could not be renewed early");
                present.ok_or(AccessError::Failed(error))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether there are tokens that may still be of use.
    pub(super) async fn is_in(&self) -> bool {
        let over = |tokens: &Tokens| matches!(tokens.standing(Instant::now()), Standing::Over);
        self.read().await.is_ok() && self.state().tokens.as_ref().is_some_and(|tokens| !over(tokens))
    }

    /// Forgets an access token that a provider refused.
    pub(super) fn reject(&self, refused: &SecretString) {
        if let Some(tokens) = &mut self.state().tokens {
            tokens.reject(refused);
        }
    }

    /// Takes the tokens of a login, in place of any earlier ones.
    ///
    /// # Errors
    /// They cannot be kept; nothing has changed then.
    pub(super) async fn take(&self, answer: &BasicTokenResponse) -> Result<Tokens, LoginError> {
        let tokens = Tokens::of(answer, None);
        self.learn(&tokens);
        let before = self.replace(Some(tokens.clone()));
        match self.keep().await {
            Ok(()) => Ok(tokens),
            Err(error) => {
                self.replace(before);
                Err(error)
            }
        }
    }

    /// Forgets the tokens everywhere; those there were.
    ///
    /// # Errors
    /// They cannot be taken from where they are kept. In memory they are gone all the same.
    pub(super) async fn forget(&self) -> Result<Option<Tokens>, LoginError> {
        // What cannot be read is taken away like everything else.
        let read = self.read().await;
        let before = self.replace(None);
        self.keep().await?;
        read.map(|()| before)
    }

    /// Puts tokens in place; those before them.
    fn replace(&self, tokens: Option<Tokens>) -> Option<Tokens> {
        let mut state = self.state();
        state.read = true;
        state.version += 1;
        state.renewal = None;
        std::mem::replace(&mut state.tokens, tokens)
    }

    /// Has what is kept be what is in memory. Others may do the same meanwhile: whoever writes last writes the last change.
    async fn keep(&self) -> Result<(), LoginError> {
        let Inner { store, login, id, .. } = &*self.0;
        loop {
            let (version, tokens) = {
                let state = self.state();
                (state.version, state.tokens.clone())
            };
            match tokens {
                Some(tokens) => store.save(login.store, id, tokens.kept(login)).await?,
                None => store.remove(login.store, id).await?,
            }
            if self.state().version == version {
                return Ok(());
            }
        }
    }

    /// Reads what an earlier life of the daemon kept.
    async fn read(&self) -> Result<(), LoginError> {
        if self.state().read {
            return Ok(());
        }
        let Inner { store, login, id, .. } = &*self.0;
        let kept = store.load(login.store, id).await?;
        let tokens = kept.map(|kept| Tokens::restored(kept, Timestamp::now(), Instant::now()));
        if let Some(tokens) = &tokens {
            self.learn(tokens);
        }
        let mut state = self.state();
        // Others may have read it, or logged in, at the same time.
        if !state.read {
            state.read = true;
            state.tokens = tokens;
        }
        Ok(())
    }

    fn learn(&self, tokens: &Tokens) {
        let owner = self.0.profiles.first().map_or("", String::as_str);
        self.0.redactor.learn(owner, tokens.secrets());
    }

    fn present(&self) -> Option<SecretString> {
        self.state().tokens.as_ref()?.access()
    }

    /// Whether the tokens have to be renewed; the renewal that runs, or one that begins now.
    fn due(&self) -> Result<Due, AccessError> {
        let mut state = self.state();
        let standing = state.tokens.as_ref().map(|tokens| tokens.standing(Instant::now()));
        let (present, refresh) = match standing.unwrap_or(Standing::Over) {
            Standing::Good(access) => return Ok(Due::No(access)),
            Standing::Over => return Err(AccessError::LoggedOut),
            Standing::Due(present, refresh) => (present, refresh),
        };
        let version = state.version;
        // One that is over has changed nothing, or the tokens would not be due.
        state.renewal.take_if(|renewal| renewal.peek().is_some());
        let renewal = state.renewal.get_or_insert_with(|| self.renewal(refresh, version));
        Ok(Due::Yes {
            renewal: renewal.clone(),
            present,
        })
    }

    fn renewal(&self, refresh: SecretString, version: u64) -> Renewal {
        let account = self.clone();
        let task = tokio::spawn(async move { account.renew(refresh, version).await });
        let lost = AccessError::Failed(LoginError::Cancelled);
        async { task.await.unwrap_or(Err(lost)) }.boxed().shared()
    }

    async fn renew(&self, refresh: SecretString, version: u64) -> Result<(), AccessError> {
        let answer = self.0.client.renew(&refresh).await;
        let (tokens, ended) = match answer {
            Ok(answer) => (Some(Tokens::of(&answer, self.state().tokens.as_ref())), Ok(())),
            Err(RenewalError::Over(error)) => {
                tracing::info!(%error, profiles = ?self.0.profiles, "a login is over");
                (None, Err(AccessError::LoggedOut))
            }
            Err(RenewalError::Failed(error)) => {
                let mut state = self.state();
                if state.version == version {
                    state.renewal = None;
                }
                return Err(AccessError::Failed(error));
            }
        };
        tokens.iter().for_each(|tokens| self.learn(tokens));
        self.settle(tokens, version).await;
        ended
    }

    /// Puts what a renewal led to in place, unless somebody has logged in or out since it began.
    async fn settle(&self, tokens: Option<Tokens>, version: u64) {
        {
            let mut state = self.state();
            if state.version != version {
                return;
            }
            state.version += 1;
            state.renewal = None;
            state.tokens = tokens;
        }
        if let Err(error) = self.keep().await {
            tracing::warn!(%error, "renewed tokens are in memory only");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one assignment, so the state is whole whatever panicked.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether tokens have to be renewed before use.
enum Due {
    No(SecretString),
    Yes {
        renewal: Renewal,
        present: Option<SecretString>,
    },
}
