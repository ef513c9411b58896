//! `quintet mcp login` and `logout`: the user's login at an MCP server, in the browser.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use quintet_tools::mcp::{LoginKey, LoginRequest, LoginStore, PendingLogin};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::{find, logins};
use crate::browser::open;
use crate::cli::Login;
use crate::options::{self, OAuth, Options};

/// Maximum time for the user to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Maximum time for a browser to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a browser's request, in bytes.
const REQUEST_LIMIT: u64 = 64 * 1024;
const REDIRECT_PATH: &str = "/callback";

const DONE: &str = "You are logged in. You can close this page.";
const FAILED: &str = "The login failed; the terminal says why. You can close this page.";

/// `quintet mcp login`. Fails with the reason.
pub(super) fn login(login: &Login) -> Result<()> {
    let options = options::read(&login.flags)?;
    let key = key(&options, &login.name)?;
    std::fs::create_dir_all(&options.data_dir)?;
    let oauth = options.mcp.oauth.get(&login.name).cloned().unwrap_or_default();
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let logged_in = threads.block_on(log_in(&key, oauth, login, Arc::new(logins(&options))));
    // The thread that reads the terminal may still be blocked.
    threads.shutdown_background();
    logged_in.with_context(|| login.name.clone())?;
    writeln!(std::io::stdout(), "logged in at {}", key.url)?;
    Ok(())
}

/// `quintet mcp logout`. Fails if the login cannot be removed, or if there is none.
pub(super) fn logout(options: &Options, name: &str) -> Result<()> {
    let key = key(options, name)?;
    if !forget(options, &key)? {
        bail!("there is no login for {name}");
    }
    writeln!(std::io::stdout(), "the login at {name} is forgotten")?;
    Ok(())
}

/// Removes a login; true if there was one.
pub(super) fn forget(options: &Options, key: &LoginKey) -> Result<bool> {
    let threads = tokio::runtime::Builder::new_current_thread().build()?;
    threads.block_on(logins(options).remove(key)).map_err(|why| anyhow!(why))
}

fn key(options: &Options, name: &str) -> Result<LoginKey> {
    let (server, _) = find(options, name)?;
    LoginKey::of(&server).with_context(|| {
        format!("{name} needs no login: a process has none, and `headers` hold a token already")
    })
}

async fn log_in(
    key: &LoginKey,
    oauth: OAuth,
    login: &Login,
    store: Arc<dyn LoginStore>,
) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, oauth.redirect_port)).await;
    let listener = listener.with_context(|| {
        format!("port {}, which the browser is sent to, cannot be used", oauth.redirect_port)
    })?;
    let port = listener.local_addr()?.port();
    let scopes = if login.scope.is_empty() { oauth.scopes } else { login.scope.clone() };
    let request = LoginRequest {
        redirect_uri: format!("http://127.0.0.1:{port}{REDIRECT_PATH}"),
        client_id: oauth.client_id,
        client_secret: oauth.client_secret,
        scopes,
    };
    let pending = PendingLogin::begin(key, request, store).await.map_err(|why| anyhow!(why))?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "open this address in a browser:\n{}", pending.url())?;
    writeln!(stdout, "if the browser is on another machine, paste the address it ends at here")?;
    if !login.no_browser {
        let url = pending.url().to_owned();
        // The opener may run until the browser is closed.
        drop(tokio::task::spawn_blocking(move || open(&url)));
    }
    let answer = timeout(LOGIN_TIMEOUT, async {
        tokio::select! {
            answer = redirected(&listener, port, &pending) => answer,
            answer = pasted(&pending) => answer,
        }
    });
    let answer = answer.await.map_err(|_| anyhow!("there was no login within ten minutes"))?;
    let finished = pending.finish(&answer.address).await;
    if let Some(browser) = answer.browser {
        reply(browser, if finished.is_ok() { DONE } else { FAILED }).await;
    }
    finished.map_err(|why| anyhow!(why))
}

/// The redirect of the browser.
struct Answer {
    address: String,
    /// The browser's connection, which waits for a page.
    browser: Option<TcpStream>,
}

/// Waits for the redirect of the authorization server. Other requests are refused.
async fn redirected(listener: &TcpListener, port: u16, pending: &PendingLogin) -> Answer {
    loop {
        let Ok((mut browser, _)) = listener.accept().await else { continue };
        let Ok(Some(path)) = timeout(REQUEST_TIMEOUT, requested(&mut browser)).await else {
            continue;
        };
        let address = format!("http://127.0.0.1:{port}{path}");
        if path.starts_with(&format!("{REDIRECT_PATH}?")) && pending.is_answered_by(&address) {
            return Answer { address, browser: Some(browser) };
        }
        let refusal = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let _gone = browser.write_all(refusal.as_bytes()).await;
    }
}

/// The requested path; the headers are read and dropped.
async fn requested(browser: &mut TcpStream) -> Option<String> {
    let mut lines = BufReader::new(browser.take(REQUEST_LIMIT)).lines();
    let first = lines.next_line().await.ok()??;
    while !lines.next_line().await.ok()??.is_empty() {}
    let path = first.strip_prefix("GET ")?.split(' ').next()?;
    Some(path.to_owned())
}

/// Waits until the user pastes the address.
async fn pasted(pending: &PendingLogin) -> Answer {
    let line = || std::io::stdin().lines().next()?.ok();
    while let Ok(Some(line)) = tokio::task::spawn_blocking(line).await {
        let address = line.trim().to_owned();
        if pending.is_answered_by(&address) {
            return Answer { address, browser: None };
        }
        if !address.is_empty() {
            eprintln!("this is not the address that the browser ends at after this login");
        }
    }
    std::future::pending().await
}

async fn reply(mut browser: TcpStream, text: &str) {
    let page = format!("<!doctype html><meta charset=utf-8><title>Quintet</title><p>{text}");
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         referrer-policy: no-referrer\r\nconnection: close\r\n\r\n",
        page.len()
    );
    let _gone = browser.write_all(format!("{head}{page}").as_bytes()).await;
    let _gone = browser.shutdown().await;
}
