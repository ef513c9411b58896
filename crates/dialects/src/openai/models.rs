//! The list of models: providers' models, the same as agents, and the embedding model.

use std::collections::HashSet;

use quintet_kernel::port::SenseError;
use serde_json::{Value, json};

use super::decode::{AGENT, Target};
use super::reply::Reply;
use super::serve::AppState;
use super::wire::model;

/// `GET /v1/models`.
pub(super) async fn list(app: &AppState) -> Value {
    json!({ "object": "list", "data": all(app).await })
}

/// `GET /v1/models/{id}`. A provider may accept models that it does not list.
pub(super) async fn find(app: &AppState, name: &str) -> Result<Value, Reply> {
    let listed = all(app).await.into_iter().find(|model| model["id"] == name);
    if let Some(listed) = listed {
        return Ok(listed);
    }
    let target = Target::parse(name)?;
    let model_ref = target.model().unwrap_or(&app.settings.default_model);
    match app.services.models.profile(model_ref) {
        Some(_) => Ok(model(name, owner(&target), app.started)),
        None => Err(Reply::unknown_model(name)),
    }
}

async fn all(app: &AppState) -> Vec<Value> {
    let usable = app.services.models.list().await.into_iter().filter(|listed| listed.usable);
    let mut models: Vec<_> = usable.map(|listed| listed.model).collect();
    // The default model can be used even if its provider does not list it.
    models.push(app.settings.default_model.clone());
    let mut seen = HashSet::new();
    models.retain(|model| seen.insert(model.clone()));
    let proxies = models.iter().map(|it| model(&it.to_string(), &it.provider, app.started));
    let agents = models.iter().map(|it| model(&format!("{AGENT}/{it}"), AGENT, app.started));
    let embedder = &app.services.embedder;
    let off = matches!(embedder.ready(), Err(SenseError::Off(_)));
    let space = (!off).then(|| embedder.space());
    let embedding = space.map(|space| model(&space.model, &space.provider, app.started));
    proxies.chain(agents).chain(embedding).collect()
}

fn owner(target: &Target) -> &str {
    match target {
        Target::Proxy(model) => &model.provider,
        Target::Agent(_) => AGENT,
    }
}
