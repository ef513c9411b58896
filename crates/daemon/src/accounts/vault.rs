//! Encrypts and decrypts users' keys.
//!
//! The encrypted keys are in the database. The vault's key is in the desktop's keyring, if that is available and
//! unlocked when the first key is stored, otherwise in a file. The file records which.

use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use tempfile::NamedTempFile;
use tokio::sync::OnceCell;

use crate::keyring::{self, KeyringError};

const FILE: &str = "users.key";
/// The beginning of the file if the key is in the keyring; the key's name there follows.
const IN_KEYRING: &str = "keyring ";
/// The beginning of an encrypted key.
const SEALED: &str = "sealed:1:";
const KEY_BYTES: usize = 32;

/// Encrypts and decrypts users' keys.
#[derive(Debug)]
pub(crate) struct Vault {
    file: Arc<Path>,
    key: OnceCell<LessSafeKey>,
}

/// Why a key cannot be encrypted or decrypted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}, which it was encrypted with, is missing")]
    Missing(PathBuf),
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    #[error("{0} holds no key")]
    NoKey(PathBuf),
    #[error("{1}")]
    Keyring(PathBuf, keyring::KeyringError),
    #[error("it was encrypted with another key than {0} has, or is damaged")]
    Damaged(PathBuf),
    #[error("there are no random numbers")]
    Random,
}

impl Error {
    /// What the user can do about the error.
    pub(crate) fn remedy(&self) -> String {
        let anew = |file: &Path| format!("delete {} and enter the keys again", file.display());
        match self {
            Self::Missing(file) => {
                format!("restore {} from a backup, or enter the keys again", file.display())
            }
            Self::File(file, _) => {
                format!("make {} a file that the daemon can read and write", file.display())
            }
            Self::NoKey(file) => format!("restore it from a backup, or {}", anew(file)),
            Self::Keyring(file, KeyringError::Absent(_)) => {
                format!("start the daemon where the keyring is, or {}", anew(file))
            }
            Self::Keyring(file, KeyringError::Missing) => {
                format!("restore the keyring, or {}", anew(file))
            }
            Self::Keyring(_, KeyringError::Locked | KeyringError::Refused) => {
                "unlock the keyring and try again".into()
            }
            Self::Keyring(_, trouble @ (KeyringError::Silent | KeyringError::Other(_))) => {
                trouble.remedy().into()
            }
            Self::Damaged(file) => {
                format!("restore the {} of that time, or enter the key again", file.display())
            }
            Self::Random => "try again".into(),
        }
    }
}

impl Vault {
    /// A vault whose key is, or will be, in this folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { file: folder.join(FILE).into(), key: OnceCell::new() }
    }

    /// True if a text was encrypted by a vault of any version.
    pub(crate) fn is_sealed(text: &str) -> bool {
        text.starts_with("sealed:")
    }

    /// Encrypts a text for one purpose. Fails if the vault's key can neither be read nor created.
    pub(crate) async fn seal(&self, text: &str, purpose: &str) -> Result<String, Error> {
        let key = self.key(|file| read(file).or_else(|error| make(file, error))).await?;
        let mut sealed = random::<NONCE_LEN>()?.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(&sealed).map_err(|_| Error::Random)?;
        let mut body = text.as_bytes().to_vec();
        key.seal_in_place_append_tag(nonce, Aad::from(purpose), &mut body)
            .map_err(|_| Error::Random)?;
        sealed.append(&mut body);
        Ok(format!("{SEALED}{}", BASE64.encode(sealed)))
    }

    /// Decrypts a text for the same purpose. Fails if the vault's key cannot be read or is not the
    /// one that was used for encryption.
    pub(crate) async fn open(&self, sealed: &str, purpose: &str) -> Result<String, Error> {
        let damaged = || Error::Damaged(self.file.to_path_buf());
        let key = self.key(read).await?;
        let body = sealed.strip_prefix(SEALED).and_then(|body| BASE64.decode(body).ok());
        let mut body = body.ok_or_else(damaged)?;
        let (nonce, body) = body.split_at_mut_checked(NONCE_LEN).ok_or_else(damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| damaged())?;
        let text = key.open_in_place(nonce, Aad::from(purpose), body).map_err(|_| damaged())?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// The vault's key; searched again if it was not found before.
    async fn key(
        &self,
        find: impl FnOnce(&Path) -> Result<[u8; KEY_BYTES], Error> + Send + 'static,
    ) -> Result<&LessSafeKey, Error> {
        let file = Arc::clone(&self.file);
        let find = || async {
            let found = tokio::task::spawn_blocking(move || find(&file)).await;
            let bytes = found.map_err(|_| Error::NoKey(self.file.to_path_buf()))??;
            let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes);
            Ok(LessSafeKey::new(key.map_err(|_| Error::NoKey(self.file.to_path_buf()))?))
        };
        self.key.get_or_try_init(find).await
    }
}

fn read(file: &Path) -> Result<[u8; KEY_BYTES], Error> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Error::Missing(file.into()));
        }
        Err(error) => return Err(Error::File(file.into(), error)),
    };
    let key = match text.trim_end().strip_prefix(IN_KEYRING) {
        Some(name) => {
            keyring::vault_key(name).map_err(|error| Error::Keyring(file.into(), error))?
        }
        None => text.trim_end().to_owned(),
    };
    let key = BASE64.decode(key).ok().and_then(|key| key.try_into().ok());
    key.ok_or_else(|| Error::NoKey(file.into()))
}

/// Creates a key, if there is none. An existing key that cannot be read is never replaced: everything encrypted
/// with it would be lost.
fn make(file: &Path, why: Error) -> Result<[u8; KEY_BYTES], Error> {
    let Error::Missing(_) = why else { return Err(why) };
    let key = random::<KEY_BYTES>()?;
    let (name, text) = (BASE64.encode(random::<6>()?), BASE64.encode(key));
    let content = match keyring::set_vault_key(&name, &text) {
        Ok(()) => format!("{IN_KEYRING}{name}\n"),
        Err(trouble) => {
            tracing::info!("users' keys are encrypted with {}: {trouble}", file.display());
            format!("{text}\n")
        }
    };
    let made = draft(file, &content).and_then(|draft| match draft.persist_noclobber(file) {
        Ok(_) => sync_folder(file).map(|()| true),
        // Another process created one in the meantime.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    });
    if made.map_err(|error| Error::File(file.into(), error))? { Ok(key) } else { read(file) }
}

/// Writes a file that only its owner may read, atomically and durably.
pub(crate) fn write_secret(file: &Path, content: &str) -> io::Result<()> {
    draft(file, content)?.persist(file).map_err(|error| error.error)?;
    sync_folder(file)
}

/// Writes content to a temporary file next to `file`, readable only by its owner.
fn draft(file: &Path, content: &str) -> io::Result<NamedTempFile> {
    let mut draft = NamedTempFile::new_in(file.parent().unwrap_or(file))?;
    draft.write_all(content.as_bytes())?;
    draft.as_file().sync_all()?;
    Ok(draft)
}

fn sync_folder(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), |folder| std::fs::File::open(folder)?.sync_all())
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::Random)?;
    Ok(bytes)
}
