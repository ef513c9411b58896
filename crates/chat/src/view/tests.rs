//! Tests of the screen.

use std::fmt::Write;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use expect_test::{Expect, expect};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use serde_json::{Value, json};

use super::*;
use crate::model::{Message, update};
use crate::notice::Notice;
use crate::wire::{Request, Size};

fn model(cols: u16, rows: u16) -> Model {
    let mut model = Model::new(Size { cols, rows }, None, None);
    let models = json!([{ "name": "demo/small", "loaded": true }]);
    update(&mut model, Message::Back(json!({ "models": models })));
    model
}

fn receive(model: &mut Model, method: &str, params: Value) {
    let message = json!({ "method": method, "params": params });
    update(model, Message::Notice(Notice::read(&message).unwrap()));
}

fn press(model: &mut Model, code: KeyCode) -> Vec<Request> {
    update(model, Message::Key(code.into()))
}

/// A conversation with every kind of entry.
fn conversation(cols: u16, rows: u16) -> Model {
    let mut model = model(cols, rows);
    update(&mut model, Message::Paste("How do I read a file\nline by line?".into()));
    press(&mut model, KeyCode::Enter);
    let block = |kind: &str, content: &str| {
        let meta = json!({ "file": "src/main.rs", "lines": "3-7" });
        let block =
            json!({ "type": kind, "language": "rust", "content": content, "metadata": meta });
        json!({ "query_id": "q-1", "block": block })
    };
    let done = json!({ "execution_id": "e", "tool_name": "read_file", "status": "success", "result": { "duration_ms": 3 } });
    receive(&mut model, "tool.complete", done);
    receive(&mut model, "stream.block", block("tool_output", "fn main() {}\n"));
    let text = "## Reading\nUse a **buffered** reader, as `BufRead` gives you one line after the other without reading it all at once:\n- it is short\n- it is fast";
    receive(&mut model, "stream.token", json!({ "query_id": "q-1", "token": text }));
    receive(
        &mut model,
        "stream.block",
        block("code", "for line in reader.lines() {\n\tprintln!(\"{}\", line?); // one\n}"),
    );
    receive(&mut model, "stream.block", block("diff", "@@ -1 +1 @@\n-old\n+new"));
    receive(
        &mut model,
        "agent.thinking",
        json!({ "query_id": "q-1", "phase": "generating", "message": "Writing the answer" }),
    );
    update(&mut model, Message::Paste("and then".into()));
    model
}

fn request(cols: u16, rows: u16) -> Model {
    let mut model = conversation(cols, rows);
    let diff: String = (0..40).fold("--- a/x\n+++ b/x\n@@ -1 +1 @@\n".into(), |mut diff, n| {
        let _ = writeln!(diff, "+line {n}");
        diff
    });
    receive(
        &mut model,
        "tool.request_approval",
        json!({
            "execution_id": "exec-1", "query_id": "q-1", "timeout": 30,
            "tool": { "name": "write_file", "description": "write_file x" },
            "preview": { "type": "diff", "content": diff },
            "risk_assessment": {
                "level": "high", "reasons": ["Replaces a file", "Outside of version control"],
                "reversible": false,
            },
        }),
    );
    model
}

fn listed(cols: u16, rows: u16) -> Model {
    let mut model = model(cols, rows);
    update(&mut model, Message::Key(KeyEvent::new(KeyCode::Char('l'), KeyModifiers::CONTROL)));
    let sessions = json!([
        { "session_id": "s-1", "title": "Fix the build", "updated_at": "2026-11-16T04:00:00+00:00", "message_count": 12, "workspace": "/home/me/project", "running": true },
        { "session_id": "s-2", "title": "Write a poem", "updated_at": "2026-11-15T22:10:00+00:00", "message_count": 2, "workspace": "/home/me" },
    ]);
    update(&mut model, Message::Answer(Request::List, Ok(json!({ "sessions": sessions }))));
    model
}

fn screen(model: &mut Model, colours: Colours) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(model.size.cols, model.size.rows)).unwrap();
    let mut view = View::new(colours);
    terminal.draw(|frame| view.draw(frame, model)).unwrap();
    terminal.backend().clone()
}

fn check(mut model: Model, expect: Expect) {
    let screen = screen(&mut model, Colours::On).to_string();
    let lines: Vec<&str> = screen.lines().map(|line| line.trim_matches('"').trim_end()).collect();
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn a_conversation_at_80_by_24() {
    check(
        conversation(80, 24),
        expect![[r#"
        > How do I read a file
          line by line?

        ✓ read_file 3 ms
        │ fn main() {}

        Reading
        Use a buffered reader, as BufRead gives you one line after the other without
        reading it all at once:
        • it is short
        • it is fast

        ┌ rust src/main.rs:3-7
        │ for line in reader.lines() {
        │     println!("{}", line?); // one
        │ }

        ┌ diff src/main.rs:3-7
        │ @@ -1 +1 @@
        │ -old
        │ +new

         | Writing the answer                                     demo/small | 0 tokens
        > and then"#]],
    );
}

#[test]
fn a_conversation_on_a_wide_screen() {
    check(
        conversation(120, 30),
        expect![[r#"
        > How do I read a file
          line by line?

        ✓ read_file 3 ms
        │ fn main() {}

        Reading
        Use a buffered reader, as BufRead gives you one line after the other without reading it all at once:
        • it is short
        • it is fast

        ┌ rust src/main.rs:3-7
        │ for line in reader.lines() {
        │     println!("{}", line?); // one
        │ }

        ┌ diff src/main.rs:3-7
        │ @@ -1 +1 @@
        │ -old
        │ +new








         | Writing the answer                                                                             demo/small | 0 tokens
        > and then"#]],
    );
}

#[test]
fn an_approval_request() {
    check(
        request(80, 24),
        expect![[r#"
         write_file wants to change files (high risk)
        write_file x
        - Replaces a file
        - Outside of version control
        cannot be undone; refused in 30 s
        --- a/x
        +++ b/x
        @@ -1 +1 @@
        +line 0
        +line 1
        +line 2
        +line 3
        +line 4
        +line 5
        +line 6
        +line 7
        +line 8
        +line 9
        +line 10
        +line 11
        +line 12
         y yes  n/Esc no  a always this one  s always similar  ↑↓ scroll
         | write_file waits for approval                          demo/small | 0 tokens
        > and then"#]],
    );
    let mut scrolled = request(80, 24);
    press(&mut scrolled, KeyCode::PageDown);
    check(
        scrolled,
        expect![[r#"
         write_file wants to change files (high risk)
        write_file x
        - Replaces a file
        - Outside of version control
        cannot be undone; refused in 30 s
        +line 9
        +line 10
        +line 11
        +line 12
        +line 13
        +line 14
        +line 15
        +line 16
        +line 17
        +line 18
        +line 19
        +line 20
        +line 21
        +line 22
        +line 23
        +line 24
         y yes  n/Esc no  a always this one  s always similar  ↑↓ scroll
         | write_file waits for approval                          demo/small | 0 tokens
        > and then"#]],
    );
}

#[test]
fn the_list_of_sessions() {
    check(
        listed(80, 10),
        expect![[r#"
        Sessions find: _
        *2026-11-16 04:00   12  Fix the build  /home/me/project
         2026-11-15 22:10    2  Write a poem  /home/me




         Enter opens  Del deletes  Esc closes  type to find
         ready, /help                                             demo/small | 0 tokens
        >"#]],
    );
    let mut deleting = listed(80, 10);
    press(&mut deleting, KeyCode::Delete);
    check(
        deleting,
        expect![[r#"
        Sessions find: _
        *2026-11-16 04:00   12  Fix the build  /home/me/project
         2026-11-15 22:10    2  Write a poem  /home/me




         delete "Fix the build" for good? y / n
         ready, /help                                             demo/small | 0 tokens
        >"#]],
    );
}

#[test]
fn the_help_fits() {
    let mut model = model(80, 24);
    update(&mut model, Message::Paste("/help".into()));
    press(&mut model, KeyCode::Enter);
    check(
        model,
        expect![[r#"
            Keys and commands

             Enter              ask
             Alt-Enter, Ctrl-J  a new line
             Up, Down           input history
             PgUp, PgDn, Esc    scroll, back to the end
             Ctrl-F             search the conversation
             Ctrl-L             sessions
             Ctrl-C             stop the answer; twice: quit
             Ctrl-D             quit
             Ctrl-A E W U K     line start, end; delete word, to start, to end
             y n a s            yes, no, always this one, always similar (for approvals)
             a leading space    keeps a line out of the history

             /new               start a new session
             /sessions          open, search and delete sessions
             /model [NAME]      list models, or choose one
             /resume            continue an answer that was paused after a crash
             /clear             clear the screen
             /help              keys and commands
             /quit              leave

             ready, /help                                             demo/small | 0 tokens
            >"#]],
    );
}

#[test]
fn a_slash_lists_the_commands() {
    let mut model = model(80, 12);
    press(&mut model, KeyCode::Char('/'));
    check(
        model,
        expect![[r#"



         /new               start a new session
         /sessions          open, search and delete sessions
         /model [NAME]      list models, or choose one
         /resume            continue an answer that was paused after a crash
         /clear             clear the screen
         /help              keys and commands
         /quit              leave
         ready, /help                                             demo/small | 0 tokens
        > /"#]],
    );
    let mut model = conversation(80, 12);
    model.editor.clear();
    update(&mut model, Message::Paste("/s".into()));
    let shown = screen(&mut model, Colours::On).to_string();
    assert!(shown.contains("/sessions") && !shown.contains("/new"), "{shown}");
    press(&mut model, KeyCode::Tab);
    assert_eq!(model.editor.text(), "/sessions");
    update(&mut model, Message::Paste(" x".into()));
    assert_eq!(model.offered_commands(), []);
}

#[test]
fn an_approval_request_for_a_command_is_described() {
    let mut model = model(80, 12);
    receive(
        &mut model,
        "tool.request_approval",
        json!({
            "execution_id": "exec-1", "query_id": "q-1", "timeout": null,
            "tool": { "name": "shell", "description": "shell ls", "category": "shell" },
            "preview": { "type": "command", "content": "ls" },
            "risk_assessment": { "level": "low", "reasons": [], "reversible": true },
        }),
    );
    let shown = screen(&mut model, Colours::On).to_string();
    assert!(shown.contains("shell wants to run a command (low risk)"), "{shown}");
}

#[test]
fn output_of_a_command_is_shown_as_text() {
    let mut model = model(80, 12);
    let json = r#"{"cmd":"ls","exit_code":0,"stdout":"a\nb\n","stderr":""}"#;
    let block = json!({ "type": "tool_output", "content": json });
    let params = json!({ "query_id": "q-1", "block": block, "content": "a\nb\n" });
    receive(&mut model, "stream.block", params);
    let shown = screen(&mut model, Colours::On).to_string();
    assert!(shown.contains("│ a") && shown.contains("│ b"), "{shown}");
    assert!(!shown.contains("exit_code"), "{shown}");
}

#[test]
fn a_search_scrolls_to_its_match() {
    let mut model = conversation(80, 12);
    update(&mut model, Message::Key(KeyEvent::new(KeyCode::Char('f'), KeyModifiers::CONTROL)));
    update(&mut model, Message::Paste("LINE BY".into()));
    check(
        model,
        expect![[r#"
            > How do I read a file
              line by line?

            ✓ read_file 3 ms
            │ fn main() {}

            Reading
            Use a buffered reader, as BufRead gives you one line after the other without
            reading it all at once:
            • it is short
             | Writing the answer                          11 below | demo/small | 0 tokens
            search: LINE BY   (1 of 1)"#]],
    );
}

#[test]
fn scrolling_stops_at_the_top() {
    let mut model = conversation(80, 12);
    for _ in 0..50 {
        press(&mut model, KeyCode::PageUp);
    }
    let top = screen(&mut model, Colours::On).to_string();
    assert!(top.contains("> How do I read a file"), "{top}");
    press(&mut model, KeyCode::Esc);
    assert!(screen(&mut model, Colours::On).to_string().contains("+new"));
}

#[test]
fn every_size_can_be_drawn() {
    for cols in [1, 2, 3, 5, 20, 80] {
        for rows in [1, 2, 3, 4, 5, 24] {
            for make in [conversation, request, listed] {
                screen(&mut make(cols, rows), Colours::On);
            }
            let mut help = model(cols, rows);
            help.pane = Pane::Help;
            screen(&mut help, Colours::On);
        }
    }
}

#[test]
fn no_colours_are_used_if_disabled() {
    let coloured = |colours| {
        let screen = screen(&mut request(80, 24), colours);
        screen.buffer().content().iter().any(|cell| cell.fg != Color::Reset)
    };
    assert!(coloured(Colours::On));
    assert!(!coloured(Colours::Off));
}
