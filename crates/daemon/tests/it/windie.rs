//! The computer-use protocol as its clients meet it.

mod artifacts;
mod events;
mod identity;
mod introspection;
pub(crate) mod keys;
mod perception;
pub(crate) mod runs;
mod semantic;
mod socket;
mod unavailable;
mod voice;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::client::Client;
use crate::daemon::World;

/// Everybody has to say who he is.
pub(crate) const AUTH: &str =
    "[approval]\nkinds = []\n[verify]\nauto = false\n[windie]\ninstall_auth = true\n";

/// A client, with the token that it was given.
pub(crate) struct Guest {
    pub(crate) client: Client,
    pub(crate) token: Option<String>,
    pub(crate) user: String,
    pub(crate) install: String,
}

impl Guest {
    /// A client without a token.
    pub(crate) fn stranger(world: &World) -> Self {
        let client = Client::new(world.windie());
        Self { client, token: None, user: String::new(), install: String::new() }
    }

    /// A client that registered.
    pub(crate) async fn register(world: &World) -> Self {
        let mut guest = Self::stranger(world);
        let (status, answer) =
            guest.post("/api/install/register", json!({ "operating_system": "Linux" })).await;
        assert_eq!((status, &answer["success"]), (200, &json!(true)), "{answer}");
        let text = |name: &str| answer[name].as_str().unwrap().to_owned();
        guest.token = Some(text("install_token"));
        (guest.user, guest.install) = (text("user_id"), text("install_id"));
        guest
    }

    /// The same one, of the daemon that runs now.
    pub(crate) fn again(&self, world: &World) -> Self {
        let client = Client::new(world.windie());
        let (user, install) = (self.user.clone(), self.install.clone());
        Self { client, token: self.token.clone(), user, install }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, path);
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    /// Hands a file in, said to be of some type.
    pub(crate) async fn hand_in(&self, kind: Option<&str>, content: &[u8]) -> (u16, Value) {
        answer(self.upload("file", kind, content).await).await
    }

    /// Sends a form with one file in it.
    pub(crate) async fn upload(&self, field: &str, kind: Option<&str>, content: &[u8]) -> Response {
        let kind = kind.map(|kind| format!("content-type: {kind}\r\n")).unwrap_or_default();
        let head = format!(
            "--edge\r\ncontent-disposition: form-data; name=\"{field}\"; filename=\"a.bin\"\r\n{kind}\r\n"
        );
        let body = [head.as_bytes(), content, b"\r\n--edge--\r\n"].concat();
        let request = self.request(Method::POST, "/api/artifacts/");
        let request = request.header("content-type", "multipart/form-data; boundary=edge");
        request.body(body).send().await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        answer(request.body(body.to_string()).send().await.unwrap()).await
    }
}

pub(crate) async fn answer(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// What an error says.
pub(crate) fn detail(text: &str) -> Value {
    json!({ "detail": text })
}
