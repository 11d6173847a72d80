//! Logins: a person lets this daemon use their account at a provider, and the daemon keeps the tokens and renews them.
//!
//! The flow runs here and not in the client: tokens never leave the daemon, and a terminal that dies in the middle loses nothing. Profiles
//! with the same endpoints and client share one login. One login at a time for each: a new one ends the one that waits.

mod account;
mod client;
mod error;
mod flow;
mod loopback;
mod store;
mod tokens;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use protocol::method::{LoggedIn, LoggedOut, LoginParams, LoginStarted, LoginWay, Revoked};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use super::error::AuthError;
use super::keyring::Keyring;
use super::redact::Redactor;
use crate::config::Config;
use crate::config::login::{Login, LoginId};
use crate::config::profile::KeySource;
use account::{AccessError, Account};
use flow::Patience;
use store::Store;

pub use client::{HttpFailed, TokenHttp};
pub use error::LoginError;

/// The logins of the configuration, whatever becomes of it.
pub struct Logins {
    known: Mutex<Arc<Known>>,
    store: Store,
    http: Arc<dyn TokenHttp>,
    redactor: Redactor,
    /// The last login begun for each account; bounded by the configurations of this daemon's life.
    running: Mutex<BTreeMap<LoginId, Running>>,
    patience: Patience,
}

/// What a configuration says about logins.
#[derive(Default)]
struct Known {
    accounts: BTreeMap<LoginId, Account>,
    default_model: Option<String>,
}

/// A login that waits for the person, or the outcome of one that is over.
struct Running {
    number: String,
    cancel: CancellationToken,
    outcome: Shared<BoxFuture<'static, Result<LoggedIn, LoginError>>>,
}

impl Logins {
    /// The logins that `config` describes. `http` reaches their providers, `state_dir` or `keyring` keeps their tokens, `redactor`
    /// learns all of them.
    pub fn new(
        config: &Config,
        state_dir: &Path,
        keyring: Keyring,
        http: Arc<dyn TokenHttp>,
        redactor: &Redactor,
    ) -> Self {
        let logins = Self {
            known: Mutex::default(),
            store: Store::new(state_dir, keyring),
            http,
            redactor: redactor.clone(),
            running: Mutex::default(),
            patience: Patience::default(),
        };
        logins.follow(config);
        logins
    }

    /// From now on the logins are those of `config`. An account that it still has keeps its tokens, and a renewal under way.
    pub fn follow(&self, config: &Config) {
        let before = self.known();
        let account = |(id, (login, profiles)): (LoginId, (Login, Vec<String>))| {
            let login = Arc::new(login);
            let account = match before.accounts.get(&id) {
                Some(account) => account.with(login, profiles),
                None => Account::new(
                    login,
                    profiles,
                    Arc::clone(&self.http),
                    self.store.clone(),
                    self.redactor.clone(),
                ),
            };
            (id, account)
        };
        let known = Known {
            accounts: self.described(config).into_iter().map(account).collect(),
            default_model: config.default_model.clone(),
        };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(known);
    }

    /// The logins that `config` describes, each with the profiles that share it.
    fn described(&self, config: &Config) -> BTreeMap<LoginId, (Login, Vec<String>)> {
        let mut shared: BTreeMap<LoginId, (Login, Vec<String>)> = BTreeMap::new();
        for profile in config.models.values() {
            let KeySource::Login(login) = &profile.key else {
                continue;
            };
            if let Some(secret) = &login.client_secret {
                self.redactor.learn(&profile.name, [secret.expose_secret()]);
            }
            let (all, profiles) = shared
                .entry(login.id())
                .or_insert_with(|| (Login::clone(login), Vec::new()));
            // One token serves them all, so it has to be good for what each wants.
            let further = login.scopes.iter().filter(|scope| !all.scopes.contains(scope));
            let further: Vec<String> = further.cloned().collect();
            all.scopes.extend(further);
            profiles.push(profile.name.clone());
        }
        shared
    }

    fn known(&self) -> Arc<Known> {
        // Replaced in one step, so it is whole whatever panicked.
        Arc::clone(&self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The access token for a profile with these settings, renewed if that is due.
    ///
    /// # Errors
    /// `LoggedOut` where a person has to log in, `Renewal` where the provider could not be asked.
    pub(super) async fn access(&self, profile: &str, login: &Login) -> Result<SecretString, AuthError> {
        let logged_out = || AuthError::LoggedOut {
            profile: profile.to_owned(),
        };
        let known = self.known();
        let account = known.accounts.get(&login.id()).ok_or_else(logged_out)?;
        account.access().await.map_err(|error| match error {
            AccessError::LoggedOut => logged_out(),
            AccessError::Failed(error) => AuthError::Login {
                profile: profile.to_owned(),
                error,
            },
        })
    }

    /// Whether there are tokens for these settings, as far as is known here.
    pub(super) async fn is_in(&self, login: &Login) -> bool {
        match self.known().accounts.get(&login.id()) {
            Some(account) => account.is_in().await,
            None => false,
        }
    }

    /// Forgets an access token that the provider did not take; the next one is a renewed one.
    pub(super) fn reject(&self, login: &Login, refused: &SecretString) {
        if let Some(account) = self.known().accounts.get(&login.id()) {
            account.reject(refused);
        }
    }

    /// Begins a login, and ends one that waits for the same account.
    ///
    /// # Errors
    /// No such login, or the provider cannot be asked.
    pub async fn begin(&self, params: LoginParams) -> Result<LoginStarted, LoginError> {
        let account = self.account(params.profile.as_deref())?;
        let begun = match params.way.unwrap_or_else(|| flow::usual(&account)) {
            LoginWay::Browser => {
                // The port it waits at may be the one that is wanted again.
                self.end(&account).await;
                flow::browser(&account, self.patience).await?
            }
            LoginWay::Device => flow::device(&account, self.patience).await?,
        };
        let number = uuid::Uuid::new_v4().to_string();
        let started = LoginStarted {
            login: number.clone(),
            way: begun.way,
            profiles: account.profiles().to_vec(),
            url: begun.url,
            host: begun.host,
            code: begun.code,
            expires_in_ms: u64::try_from(begun.expires_in.as_millis()).unwrap_or(u64::MAX),
        };
        let cancel = CancellationToken::new();
        let outcome = run(account.clone(), begun.tokens, cancel.clone());
        let running = Running {
            number,
            cancel,
            outcome,
        };
        if let Some(before) = self.running().insert(account.login().id(), running) {
            before.cancel.cancel();
        }
        Ok(started)
    }

    /// Waits for the end of a login, which may be over already.
    ///
    /// # Errors
    /// `Unknown`, or why it came to nothing.
    pub async fn wait(&self, number: &str) -> Result<LoggedIn, LoginError> {
        let outcome = self.find(number, |running| running.outcome.clone())?;
        outcome.await
    }

    /// Ends a login that waits. One that is over stays as it is.
    ///
    /// # Errors
    /// `Unknown`.
    pub fn cancel(&self, number: &str) -> Result<(), LoginError> {
        self.find(number, |running| running.cancel.cancel())
    }

    /// Forgets the tokens of an account, and ends them at the provider where it has an address for that.
    ///
    /// # Errors
    /// No such login, or the tokens cannot be taken from where they are kept.
    pub async fn logout(&self, profile: Option<&str>) -> Result<LoggedOut, LoginError> {
        let account = self.account(profile)?;
        self.end(&account).await;
        let before = account.forget().await?;
        tracing::info!(profiles = ?account.profiles(), "logged out");
        let token = before.as_ref().and_then(tokens::Tokens::to_revoke);
        let told = match token {
            Some((hint, token)) => account.client().revoke(hint, &token).await,
            None => None,
        };
        let (revoked, problem) = match told {
            None => (Revoked::NotAsked, None),
            Some(Ok(())) => (Revoked::Yes, None),
            Some(Err(error)) => (Revoked::Failed, Some(error.to_string())),
        };
        Ok(LoggedOut {
            profiles: account.profiles().to_vec(),
            was_in: before.is_some(),
            revoked,
            problem,
        })
    }

    /// The account of the profile of this name; without one that of the default model, or the only one there is.
    fn account(&self, profile: Option<&str>) -> Result<Account, LoginError> {
        let Known {
            accounts,
            default_model,
        } = &*self.known();
        let of = |name: &str| {
            let has = |account: &&Account| account.profiles().iter().any(|profile| profile == name);
            accounts.values().find(has).cloned()
        };
        if let Some(name) = profile {
            return of(name).ok_or_else(|| LoginError::NoLogin(name.to_owned()));
        }
        let only = accounts.values().next().filter(|_| accounts.len() == 1).cloned();
        let usual = default_model.as_deref().and_then(of);
        usual.or(only).ok_or_else(|| {
            let profiles = accounts.values().flat_map(Account::profiles);
            LoginError::Unnamed(profiles.cloned().collect())
        })
    }

    /// Ends a login that waits for the account, and waits until it has let go of its listener.
    async fn end(&self, account: &Account) {
        let waits = self.running().get(&account.login().id()).map(|running| {
            running.cancel.cancel();
            running.outcome.clone()
        });
        if let Some(outcome) = waits {
            // Its outcome is for whoever waits for it.
            let _over = outcome.await;
        }
    }

    fn find<T>(&self, number: &str, then: impl FnOnce(&Running) -> T) -> Result<T, LoginError> {
        let running = self.running();
        let found = running.values().find(|running| running.number == number);
        found.map(then).ok_or(LoginError::Unknown)
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<LoginId, Running>> {
        // Single insertions leave the map whole, whatever panicked.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Logins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logins")
            .field("accounts", &self.known().accounts.keys())
            .finish_non_exhaustive()
    }
}

/// Runs a login to its end, whether anybody waits for it or not.
fn run(
    account: Account,
    tokens: BoxFuture<'static, Result<oauth2::basic::BasicTokenResponse, LoginError>>,
    cancel: CancellationToken,
) -> Shared<BoxFuture<'static, Result<LoggedIn, LoginError>>> {
    let task = tokio::spawn(async move {
        let answer = tokio::select! {
            () = cancel.cancelled() => return Err(LoginError::Cancelled),
            answer = tokens => answer?,
        };
        let tokens = account.take(&answer).await?;
        tracing::info!(profiles = ?account.profiles(), "logged in");
        let left = tokens.left(std::time::Instant::now());
        Ok(LoggedIn {
            profiles: account.profiles().to_vec(),
            kept: account.kept_at(),
            expires_in_ms: left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
            renews: tokens.renews(),
        })
    });
    async { task.await.unwrap_or(Err(LoginError::Cancelled)) }
        .boxed()
        .shared()
}

#[cfg(test)]
mod tests;
