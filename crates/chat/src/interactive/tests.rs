//! Tests of a conversation with a scripted daemon, on a screen in memory.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use futures_util::stream;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::*;
use crate::scripted::{Server, Step, accept, complete, load, request_write_approval, token};

const SIZE: Size = Size { cols: 80, rows: 24 };

struct TestScreen {
    conversation: Conversation,
    terminal: Terminal<TestBackend>,
}

impl TestScreen {
    async fn enter(settings: &Settings) -> Self {
        let (connection, server) =
            Reconnecting::open(settings, SIZE, RetryLimit::Unlimited).await.unwrap();
        let mut conversation = Conversation::new(settings, SIZE, connection);
        conversation.take(Message::Back(server)).await;
        let terminal = Terminal::new(TestBackend::new(SIZE.cols, SIZE.rows)).unwrap();
        Self { conversation, terminal }
    }

    async fn press(&mut self, code: KeyCode) {
        self.conversation.event(Event::Key(code.into())).await;
    }

    async fn submit(&mut self, text: &str) {
        self.conversation.event(Event::Paste(text.into())).await;
        self.press(KeyCode::Enter).await;
    }

    fn screen(&mut self) -> String {
        let Conversation { model, view, .. } = &mut self.conversation;
        self.terminal.draw(|frame| view.draw(frame, model)).unwrap();
        self.terminal.backend().to_string()
    }

    /// Applies updates until the text is on the screen.
    async fn until(&mut self, text: &str) {
        while !self.screen().contains(text) {
            let came = self.conversation.connection.next(SIZE).await.unwrap();
            self.conversation.apply_update(came).await;
        }
    }
}

#[tokio::test]
async fn a_message_is_sent_approved_and_answered() {
    let server = Server::play(vec![vec![
        accept(),
        request_write_approval(),
        Step::Answer("tool.approve", json!({ "status": "approved" })),
        token("It is written.", 0),
        complete("success"),
        Step::ExpectNotification("context.update"),
    ]]);
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("history");
    let settings = Settings { history: Some(history.clone()), ..server.settings.clone() };
    let mut stage = TestScreen::enter(&settings).await;
    stage.submit("write it").await;
    stage.until("write_file wants to change files (medium risk)").await;
    assert!(stage.screen().contains("+fn new() {}"));
    stage.conversation.take(Message::Tick).await;
    stage.conversation.take(Message::Tick).await;
    stage.press(KeyCode::Char('y')).await;
    stage.until("It is written.").await;
    stage.until("12 tokens").await;
    stage.conversation.event(Event::Resize(100, 30)).await;
    let received = server.received().await;
    assert_eq!(received[2]["params"]["approved"], true);
    assert_eq!(received[3]["params"]["terminal_size"], json!({ "cols": 100, "rows": 30 }));
    assert_eq!(received[3].get("id"), None);
    assert_eq!(history_file::read(&history), ["write it"]);
}

#[tokio::test]
async fn an_answer_continues_after_a_reconnect() {
    let server = Server::play(vec![
        vec![accept(), token("Hello, ", 0)],
        vec![load(true), token("world", 7), complete("success")],
    ]);
    let mut stage = TestScreen::enter(&server.settings).await;
    stage.submit("greet").await;
    stage.until("Hello, world").await;
    let received = server.received().await;
    assert_eq!(received[3]["params"], json!({ "session_id": "session-1", "offset": 7 }));
}

#[tokio::test]
async fn the_named_session_is_shown() {
    let server = Server::play(vec![vec![load(false)]]);
    let settings = Settings { session: Some("session-1".into()), ..server.settings.clone() };
    let mut stage = TestScreen::enter(&settings).await;
    stage.until("what was answered").await;
}

#[tokio::test]
async fn the_loop_ends_when_the_user_quits() {
    let server = Server::play(vec![vec![accept()]]);
    let (connection, hello) =
        Reconnecting::open(&server.settings, SIZE, RetryLimit::Unlimited).await.unwrap();
    let mut conversation = Conversation::new(&server.settings, SIZE, connection);
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let key = KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL);
    let keys = stream::iter([
        Ok(Event::Key(KeyCode::Char('a').into())),
        Ok(Event::Key(KeyCode::Backspace.into())),
        Ok(Event::Key(key)),
    ]);
    conversation.run(&mut terminal, keys, hello).await.unwrap();
    assert!(conversation.model.leaving);
}
