//! The caches of a conversation, and which tokens they hold.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::Model;
use super::generation::row;
use crate::cache::{CachePlan, CacheSet, DEFAULT_CODECS, Identity};
use crate::graph::{LoadedGraph, TokenPhases};
use crate::pass::KNOWN_TOKENS;
use crate::{Error, Result};

/// Caches that live from one request to the next: what a new prompt shares with the tokens read
/// before is not read again.
#[derive(Debug)]
pub struct Session {
    pub(super) caches: CacheSet,
    /// The tokens that the caches hold.
    pub(super) ids: Vec<u32>,
    plan: CachePlan,
}

impl Session {
    /// A session without tokens.
    pub fn new(plan: &CachePlan) -> Self {
        Self { caches: plan.make(), ids: Vec::new(), plan: plan.clone() }
    }

    /// Tokens that the caches hold.
    pub fn tokens(&self) -> &[u32] {
        &self.ids
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.caches = self.plan.make();
        self.ids.clear();
    }

    /// Computes what a pass over `part` appended and counts it in; empties the session where the pass
    /// or MLX failed.
    pub(super) fn hold<T>(&mut self, part: &[u32], read: Result<T>) -> Result<()> {
        if let Err(error) = read.and_then(|_| self.caches.eval()) {
            self.clear();
            return Err(error);
        }
        self.ids.extend_from_slice(part);
        Ok(())
    }

    /// Brings the caches to the longest beginning of `prompt` that they can hold and that leaves a
    /// token to read; gives its length.
    ///
    /// # Errors
    /// MLX's.
    pub(super) fn reuse(&mut self, prompt: &[u32]) -> Result<usize> {
        let most = prompt.len().saturating_sub(1);
        let common = self.ids.iter().zip(prompt).take(most).take_while(|(a, b)| a == b).count();
        let surplus = self.ids.len() - common;
        // A count of tokens fits: the caches refuse more than 2^30.
        let surplus_i32 = i32::try_from(surplus).unwrap_or(i32::MAX);
        // What was rewritten since is not what a session of that length holds.
        let fresh = common as i64 >= i64::from(self.caches.reusable_from());
        if surplus > 0 && common > 0 && fresh && self.caches.can_trim(surplus_i32) {
            self.caches.trim(surplus_i32)?;
            self.ids.truncate(common);
        } else if surplus > 0 {
            self.clear();
        }
        Ok(self.ids.len())
    }
}

impl Model {
    /// Reads tokens into a session without asking what follows.
    ///
    /// # Errors
    /// An id is outside the vocabulary, or MLX's; the session is empty then.
    pub fn append(&self, session: &mut Session, ids: &[u32]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        self.check_ids(ids)?;
        if let LoadedGraph::Denoising(graph) = self.graph() {
            return self.read_known(&**graph, session, ids);
        }
        let graph = self.graph().autoregressive()?;
        for part in ids.chunks(KNOWN_TOKENS as usize) {
            let read = graph.append_known(&mut session.caches, &row(part)?);
            session.hold(part, read)?;
        }
        Ok(())
    }

    /// Writes a session's caches and tokens to a file.
    ///
    /// # Errors
    /// The session is empty, or the file cannot be written.
    pub fn save_session(&self, session: &Session, file: &Path) -> Result<()> {
        if session.ids.is_empty() {
            return Err(Error::input("saved caches", "at least one token", "none"));
        }
        let key = self.composition().cache_key();
        session.caches.save(file, &self.identity()?, &key, std::slice::from_ref(&session.ids))
    }

    /// Reads a session that [`Model::save_session`] wrote for the same model and composition.
    ///
    /// # Errors
    /// The file is damaged, or of another model, composition or number of rows.
    pub fn load_session(&self, file: &Path) -> Result<Session> {
        let key = self.composition().cache_key();
        let (caches, rows) = self.cache_plan().load(file, &self.identity()?, &key)?;
        let count = rows.len();
        match <[Vec<u32>; 1]>::try_from(rows) {
            Ok([ids]) => Ok(Session { caches, ids, plan: self.cache_plan().clone() }),
            Err(_) => Err(Error::input(file.display().to_string(), "one row", count.to_string())),
        }
    }

    /// Whose caches these are: the family, and the files that make the model what it is.
    fn identity(&self) -> Result<Identity> {
        let folder = self.source().folder();
        let digest = |name: &str| match std::fs::read(folder.join(name)) {
            Ok(bytes) => Ok(hex(&Sha256::digest(bytes))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(e) => Err(Error::Io { file: folder.join(name), reason: e.to_string() }),
        };
        Ok(Identity {
            model: self.family().name.to_owned(),
            config: digest("config.json")?,
            weights: self.source().fingerprint()?,
            tokenizer: digest("tokenizer.json")?,
            namespace: String::new(),
            codecs: self.bound().state_codecs().unwrap_or(&DEFAULT_CODECS).id.to_owned(),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
