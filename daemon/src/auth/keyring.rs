//! The system's keyring: keys and tokens by name, under the service `agentd`.
//!
//! A keyring may be locked and ask a person, so a look-up runs on a thread of its own and is given up after ten seconds. The backend is
//! there only in builds with the feature `keyring`; without it every look-up is an error that says so.

use std::sync::Arc;
use std::time::Duration;

use keyring_core::{CredentialStore, Entry, Error};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;

/// The service that entries belong to.
const SERVICE: &str = "agentd";

/// How long a look-up may take: a keyring that is locked waits for a person who may not be there.
const LIMIT: Duration = Duration::from_secs(10);

/// Look-ups at once. One that hangs keeps its thread, and must not take all the others.
const AT_ONCE: usize = 2;

/// Why the keyring gave nothing. No message holds an entry or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// This build has no backend.
    #[error("this build of agentd has no keyring")]
    NotBuilt,
    /// No keyring answers here.
    #[error("no keyring service runs here ({0})")]
    NoService(String),
    /// It did not answer, which a locked one does not before a person has unlocked it.
    #[error("the keyring did not answer within {} s; it may be locked", .0.as_secs())]
    Silent(Duration),
    /// It has no entry of this name.
    #[error("the keyring has no entry of service `{SERVICE}` and user name `{0}`")]
    NoEntry(String),
    /// It answered something else.
    #[error("the keyring refused: {0}")]
    Refused(String),
}

/// How the backend is opened: for each look-up anew, since the desktop session it belongs to may end before the daemon does.
type Open = dyn Fn() -> Result<Arc<CredentialStore>, KeyringError> + Send + Sync;

/// The keyring. Clones share it.
#[derive(Clone)]
pub struct Keyring {
    open: Arc<Open>,
    room: Arc<Semaphore>,
    limit: Duration,
}

impl Keyring {
    /// The keyring of the system the daemon runs on.
    pub fn system() -> Self {
        Self::opened_by(Arc::new(open_system), LIMIT)
    }

    fn opened_by(open: Arc<Open>, limit: Duration) -> Self {
        Self {
            open,
            room: Arc::new(Semaphore::new(AT_ONCE)),
            limit,
        }
    }

    /// A keyring that is `store`.
    #[cfg(test)]
    pub(super) fn of(store: Arc<CredentialStore>) -> Self {
        Self::opened_by(Arc::new(move || Ok(Arc::clone(&store))), LIMIT)
    }

    /// What stands under `name`.
    ///
    /// # Errors
    /// No keyring, no entry, no answer, or one that is no text.
    pub async fn get(&self, name: &str) -> Result<SecretString, KeyringError> {
        self.with(name, |entry| entry.get_password().map(SecretString::from))
            .await
    }

    /// Puts `secret` under `name`, over what stands there.
    ///
    /// # Errors
    /// No keyring, no answer, or a refusal.
    pub async fn set(&self, name: &str, secret: SecretString) -> Result<(), KeyringError> {
        self.with(name, move |entry| entry.set_password(secret.expose_secret()))
            .await
    }

    /// Takes away what stands under `name`, if anything does.
    ///
    /// # Errors
    /// No keyring, no answer, or a refusal.
    pub async fn remove(&self, name: &str) -> Result<(), KeyringError> {
        match self.with(name, Entry::delete_credential).await {
            Err(KeyringError::NoEntry(_)) => Ok(()),
            removed => removed,
        }
    }

    async fn with<T: Send + 'static>(
        &self,
        name: &str,
        act: impl FnOnce(&Entry) -> keyring_core::Result<T> + Send + 'static,
    ) -> Result<T, KeyringError> {
        let (open, owned) = (Arc::clone(&self.open), name.to_owned());
        let room = Arc::clone(&self.room);
        let looked = async move {
            let permit = room.acquire_owned().await;
            tokio::task::spawn_blocking(move || {
                // Held until the thread is free again, however long ago the look-up was given up.
                let _permit = permit;
                let entry = open()?
                    .build(SERVICE, &owned, None)
                    .map_err(|error| told(&owned, error))?;
                act(&entry).map_err(|error| told(&owned, error))
            })
            .await
            .unwrap_or_else(|_| Err(KeyringError::Refused("the look-up failed".to_owned())))
        };
        tokio::time::timeout(self.limit, looked)
            .await
            .unwrap_or(Err(KeyringError::Silent(self.limit)))
    }
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyring")
    }
}

/// The crate's error without the bytes that some of them carry.
fn told(name: &str, error: Error) -> KeyringError {
    match error {
        Error::NoEntry => KeyringError::NoEntry(name.to_owned()),
        Error::NoStorageAccess(reason) => KeyringError::NoService(reason.to_string()),
        Error::PlatformFailure(reason) => KeyringError::Refused(reason.to_string()),
        Error::BadEncoding(_) | Error::BadDataFormat(..) => KeyringError::Refused("the entry is no text".to_owned()),
        Error::Ambiguous(_) => KeyringError::Refused("several entries have this name".to_owned()),
        other => KeyringError::Refused(other.to_string()),
    }
}

#[cfg(all(feature = "keyring", target_os = "linux"))]
fn open_system() -> Result<Arc<CredentialStore>, KeyringError> {
    // Whatever keeps the bus or the service from being reached, a person can only do the same about it.
    match zbus_secret_service_keyring_store::Store::new() {
        Ok(store) => Ok(store),
        Err(error) => Err(KeyringError::NoService(error.to_string())),
    }
}

#[cfg(all(feature = "keyring", target_os = "macos"))]
fn open_system() -> Result<Arc<CredentialStore>, KeyringError> {
    match apple_native_keyring_store::keychain::Store::new() {
        Ok(store) => Ok(store),
        Err(error) => Err(KeyringError::NoService(error.to_string())),
    }
}

#[cfg(not(all(feature = "keyring", any(target_os = "linux", target_os = "macos"))))]
fn open_system() -> Result<Arc<CredentialStore>, KeyringError> {
    Err(KeyringError::NotBuilt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_memory() -> anyhow::Result<Keyring> {
        Ok(Keyring::of(keyring_core::mock::Store::new()?))
    }

    #[tokio::test]
    async fn what_is_put_into_the_keyring_is_there_until_it_is_taken_away() -> anyhow::Result<()> {
        let keyring = in_memory()?;
        let none = Err(KeyringError::NoEntry("work".to_owned()));
        let get = async || keyring.get("work").await.map(|key| key.expose_secret().to_owned());
        assert_eq!(get().await, none);
        keyring.set("work", "k".into()).await?;
        assert_eq!(get().await, Ok("k".to_owned()));
        keyring.remove("work").await?;
        keyring.remove("work").await?;
        assert_eq!(get().await, none);
        Ok(())
    }

    #[tokio::test]
    async fn a_keyring_that_waits_for_a_person_is_given_up_and_does_not_take_every_thread() -> anyhow::Result<()> {
        let (unlock, locked) = std::sync::mpsc::sync_channel::<()>(0);
        let locked = std::sync::Mutex::new(locked);
        let open: Arc<Open> = Arc::new(move || {
            let _unlocked = locked.lock().map(|locked| locked.recv());
            Err(KeyringError::NotBuilt)
        });
        let keyring = Keyring::opened_by(open, Duration::from_millis(20));
        for _ in 0..5 {
            let answer = keyring.get("work").await.map(|_| ());
            assert_eq!(answer, Err(KeyringError::Silent(Duration::from_millis(20))));
        }
        assert_eq!(keyring.room.available_permits(), 0);
        drop(unlock);
        let _free = keyring.room.acquire_many(u32::try_from(AT_ONCE)?).await?;
        Ok(())
    }

    #[test]
    fn no_message_holds_what_an_entry_holds() {
        let broken = told("work", Error::BadEncoding(b"sk-hidden".to_vec()));
        assert!(!format!("{broken} {broken:?}").contains("hidden"));
    }

    #[cfg(not(feature = "keyring"))]
    #[tokio::test]
    async fn a_build_without_the_keyring_says_so() {
        let answer = Keyring::system().get("work").await.map(|_| ());
        assert_eq!(answer, Err(KeyringError::NotBuilt));
    }

    /// The real backend, at an address where no bus is.
    #[cfg(all(feature = "keyring", target_os = "linux"))]
    #[tokio::test]
    async fn where_no_service_runs_the_real_backend_says_so() {
        if std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some() {
            return;
        }
        let answer = Keyring::system().get("work").await.map(|_| ());
        assert!(matches!(answer, Err(KeyringError::NoService(_))), "{answer:?}");
    }
}
