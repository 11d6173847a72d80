//! Where tokens are kept: `tokens.json` in the state directory, for the user alone and replaced in one step, or the keyring.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::error::LoginError;
use super::tokens::Kept;
use crate::auth::keyring::{Keyring, KeyringError};
use crate::config::login::{LoginId, TokenPlace};

/// The file's name in the state directory.
const FILE: &str = "tokens.json";

/// Bytes of the file; each login has a few kilobytes.
const FILE_BYTES: u64 = 4 << 20;

/// The form of the file.
const VERSION: u32 = 1;

/// Both places. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Store {
    file: Arc<TokenFile>,
    keyring: Keyring,
}

impl Store {
    pub(super) fn new(state_dir: &Path, keyring: Keyring) -> Self {
        let file = TokenFile {
            path: state_dir.join(FILE),
            one_at_a_time: Mutex::new(()),
        };
        Self {
            file: Arc::new(file),
            keyring,
        }
    }

    /// What people are told of a place.
    pub(super) fn describe(&self, place: TokenPlace) -> String {
        match place {
            TokenPlace::File => self.file.path.display().to_string(),
            TokenPlace::Keyring => "keyring".to_owned(),
        }
    }

    /// The tokens kept for a login, if there are any.
    pub(super) async fn load(&self, place: TokenPlace, id: &LoginId) -> Result<Option<Kept>, LoginError> {
        match place {
            TokenPlace::File => {
                let id = id.clone();
                self.with_file(move |file| Ok(file.read()?.logins.remove(id.as_str())))
                    .await
            }
            TokenPlace::Keyring => match self.keyring.get(&entry(id)).await {
                Ok(text) => serde_json::from_str(text.expose_secret())
                    .map(Some)
                    .map_err(|_| no_tokens("the entry")),
                Err(KeyringError::NoEntry(_)) => Ok(None),
                Err(error) => Err(LoginError::Store(error.to_string())),
            },
        }
    }

    /// Keeps tokens in place of the earlier ones.
    pub(super) async fn save(&self, place: TokenPlace, id: &LoginId, kept: Kept) -> Result<(), LoginError> {
        match place {
            TokenPlace::File => self.change(id, Some(kept)).await,
            TokenPlace::Keyring => {
                let text = serde_json::to_string(&kept).map_err(|error| LoginError::Store(error.to_string()))?;
                let saved = self.keyring.set(&entry(id), SecretString::from(text)).await;
                saved.map_err(|error| LoginError::Store(error.to_string()))
            }
        }
    }

    /// Keeps nothing for a login any more.
    pub(super) async fn remove(&self, place: TokenPlace, id: &LoginId) -> Result<(), LoginError> {
        match place {
            TokenPlace::File => self.change(id, None).await,
            TokenPlace::Keyring => {
                let removed = self.keyring.remove(&entry(id)).await;
                removed.map_err(|error| LoginError::Store(error.to_string()))
            }
        }
    }

    async fn change(&self, id: &LoginId, kept: Option<Kept>) -> Result<(), LoginError> {
        let id = id.as_str().to_owned();
        self.with_file(move |file| file.change(id, kept)).await
    }

    async fn with_file<T: Send + 'static>(
        &self,
        act: impl FnOnce(&TokenFile) -> io::Result<T> + Send + 'static,
    ) -> Result<T, LoginError> {
        let file = Arc::clone(&self.file);
        let shown = file.path.display().to_string();
        let done = tokio::task::spawn_blocking(move || act(&file)).await;
        done.unwrap_or_else(|_| Err(io::Error::other("using it failed")))
            .map_err(|error| LoginError::Store(format!("{shown}: {error}")))
    }
}

/// The name of a login's entry in the keyring.
fn entry(id: &LoginId) -> String {
    format!("login-{id}")
}

fn no_tokens(what: &str) -> LoginError {
    LoginError::Store(format!("{what} holds something else; log out and in again"))
}

#[derive(Debug)]
struct TokenFile {
    path: PathBuf,
    /// A change reads the whole file and writes it anew.
    one_at_a_time: Mutex<()>,
}

#[derive(Serialize, Deserialize)]
struct Contents {
    version: u32,
    logins: BTreeMap<String, Kept>,
}

impl TokenFile {
    fn read(&self) -> io::Result<Contents> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(&self.path);
        let file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Contents {
                    version: VERSION,
                    logins: BTreeMap::new(),
                });
            }
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            tracing::warn!(path = %self.path.display(), "others may read the tokens: set the file's mode to 600");
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES).read_to_end(&mut bytes)?;
        // Its own words would quote the file.
        let contents: Contents =
            serde_json::from_slice(&bytes).map_err(|_| io::Error::other("it holds something else than tokens"))?;
        if contents.version != VERSION {
            return Err(io::Error::other("it is of another version of agentd"));
        }
        Ok(contents)
    }

    fn change(&self, id: String, kept: Option<Kept>) -> io::Result<()> {
        let _one = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let mut contents = self.read()?;
        match kept {
            Some(kept) => drop(contents.logins.insert(id, kept)),
            None if contents.logins.remove(&id).is_none() => return Ok(()),
            None => {}
        }
        self.replace(&serde_json::to_vec_pretty(&contents)?)
    }

    /// In one step, and on disk before anybody relies on it: a refresh token is often good for one use.
    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(0o600))
            .tempfile_in(dir)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        std::fs::File::open(dir)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::login;
    use super::super::tokens::Tokens;
    use super::super::tokens::tests::answer;
    use super::*;

    fn kept(access: &str) -> anyhow::Result<(LoginId, Kept)> {
        let login = login("https://id.example", "")?;
        let tokens = Tokens::of(&answer(access, Some("r"), None), None);
        Ok((login.id(), tokens.kept(&login)))
    }

    #[tokio::test]
    async fn the_file_is_for_its_user_alone_and_holds_the_other_logins_still() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let store = Store::new(dir.path(), Keyring::system());
        let (id, first) = kept("a")?;
        let other = login("https://other.example", "")?.id();
        store.save(TokenPlace::File, &id, first.clone()).await?;
        store.save(TokenPlace::File, &other, kept("b")?.1).await?;
        let path = dir.path().join(FILE);
        assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o7777, 0o600);
        assert_eq!(store.load(TokenPlace::File, &id).await?, Some(first));
        store.remove(TokenPlace::File, &other).await?;
        store.remove(TokenPlace::File, &other).await?;
        assert_eq!(store.load(TokenPlace::File, &other).await?, None);
        assert!(store.load(TokenPlace::File, &id).await?.is_some());
        assert_eq!(
            std::fs::read_dir(dir.path())?.count(),
            1,
            "nothing is left of writing it"
        );
        Ok(())
    }

    #[tokio::test]
    async fn a_link_a_pipe_or_another_content_is_refused_without_being_quoted() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let store = Store::new(dir.path(), Keyring::system());
        let path = dir.path().join(FILE);
        let (id, tokens) = kept("a")?;
        std::fs::write(&path, "sk-hidden")?;
        let refused = store.save(TokenPlace::File, &id, tokens).await.err();
        assert!(refused.is_some_and(|error| !error.to_string().contains("hidden")));
        assert_eq!(std::fs::read_to_string(&path)?, "sk-hidden");
        std::fs::rename(&path, dir.path().join("elsewhere"))?;
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path)?;
        assert!(store.load(TokenPlace::File, &id).await.is_err());
        Ok(())
    }

    #[tokio::test]
    async fn the_keyring_keeps_tokens_where_it_is_told_to() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let store = Store::new(dir.path(), Keyring::of(keyring_core::mock::Store::new()?));
        let (id, tokens) = kept("a")?;
        assert_eq!(store.load(TokenPlace::Keyring, &id).await?, None);
        store.save(TokenPlace::Keyring, &id, tokens.clone()).await?;
        assert_eq!(store.load(TokenPlace::Keyring, &id).await?, Some(tokens));
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 0);
        store.remove(TokenPlace::Keyring, &id).await?;
        assert_eq!(store.load(TokenPlace::Keyring, &id).await?, None);
        Ok(())
    }
}
