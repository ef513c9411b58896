//! The parts of the daemon that the console speaks to.

use std::sync::Arc;

use quintet_kernel::port::{
    Blobs, Diagnosis, DirectoryListing, Memory, Models, Ocr, PromptHistory, Runs, SessionDeletion,
    SessionForks, SessionSearch, Sessions, SpeechSynthesizer, StorageHealth, ToolServerControl,
    Transcriber, TurnChanges,
};
use tokio_util::sync::CancellationToken;

use super::usage::UsageCache;
use crate::change_feed::ChangeFeed;
use crate::dialect::Services;
use crate::presence::Presence;

/// What the console speaks to.
#[derive(Clone)]
pub(super) struct Ports {
    pub(super) sessions: Arc<dyn Sessions>,
    pub(super) archive: Arc<dyn Sessions>,
    pub(super) session_forks: Arc<dyn SessionForks>,
    pub(super) changes: Arc<dyn TurnChanges>,
    pub(super) prompts: Arc<dyn PromptHistory>,
    pub(super) search: Arc<dyn SessionSearch>,
    pub(super) session_deletion: Arc<dyn SessionDeletion>,
    pub(super) blobs: Arc<dyn Blobs>,
    pub(super) models: Arc<dyn Models>,
    pub(super) directory_listing: Arc<dyn DirectoryListing>,
    pub(super) memory: Option<Arc<dyn Memory>>,
    pub(super) runs: Arc<dyn Runs>,
    pub(super) storage_health: Arc<dyn StorageHealth>,
    pub(super) tool_servers: Arc<dyn ToolServerControl>,
    pub(super) diagnosis: Arc<dyn Diagnosis>,
    pub(super) ocr: Arc<dyn Ocr>,
    pub(super) transcriber: Arc<dyn Transcriber>,
    pub(super) speaker: Arc<dyn SpeechSynthesizer>,
    pub(super) presence: Presence,
    pub(super) usage: UsageCache,
    pub(super) change_feed: ChangeFeed,
    pub(super) closing: CancellationToken,
    pub(super) default_model: Arc<str>,
    /// The time at which the daemon started, in microseconds.
    pub(super) boot: i64,
}

impl Ports {
    pub(super) fn new(services: &Services, default_model: String) -> Self {
        Self {
            sessions: Arc::clone(&services.sessions),
            archive: Arc::clone(&services.archive),
            session_forks: Arc::clone(&services.session_forks),
            changes: Arc::clone(&services.changes),
            prompts: Arc::clone(&services.prompts),
            search: Arc::clone(&services.search),
            session_deletion: Arc::clone(&services.session_deletion),
            blobs: Arc::clone(&services.blobs),
            models: Arc::clone(&services.models),
            directory_listing: Arc::clone(&services.directory_listing),
            memory: services.memory.clone(),
            runs: Arc::clone(&services.runs),
            storage_health: Arc::clone(&services.storage_health),
            tool_servers: Arc::clone(&services.tool_server_control),
            diagnosis: Arc::clone(&services.diagnosis),
            ocr: Arc::clone(&services.ocr),
            transcriber: Arc::clone(&services.transcriber),
            speaker: Arc::clone(&services.speaker),
            presence: services.presence.clone(),
            usage: UsageCache::default(),
            change_feed: services.change_feed.clone(),
            closing: services.closing.clone(),
            default_model: default_model.into(),
            boot: services.clock.now().micros(),
        }
    }
}
