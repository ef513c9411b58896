//! Tests of prompts. Scripts are those of the session's tests.

mod context;

use expect_test::{Expect, expect};

use super::{assemble, review_prompt, summary_prompt};
use crate::model::{
    Prompt, PromptCall, PromptMessage, PromptPart, assistant_calls, assistant_text,
};
use crate::session::tests::{Session, check_stories};

/// Shows the prompt after a script.
#[track_caller]
fn check(stories: Expect) {
    check_stories(stories, |script| {
        let mut session = Session::after(script);
        let calls = session.state.open.iter().flat_map(|open| open.calls());
        let reviewed = calls.into_iter().find_map(|call| review_prompt(&session.state, call.id()));
        let prompt = match (reviewed, &session.state.compaction.pending) {
            (Some(prompt), _) => prompt,
            (None, Some(_)) => summary_prompt(&session.state),
            (None, None) => assemble(&session.state),
        };
        show(&mut session, &prompt)
    });
}

#[test]
fn a_conversation() {
    check(expect![[r#"
        create; say hi; text Hello; answer; say more
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "Hello"
            user: "more"
            7 tools
    "#]]);
}

#[test]
fn a_turn_without_tools_names_none_unless_they_were_called() {
    check(expect![[r#"
        create; say talk hi
            fake/a: The workspace is /work.
            user: "talk hi"
            0 tools
        create; say hi; answer a look; done a; text Hello; answer; say talk more
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "" a=look{}
              a=look ok:
            assistant: "Hello"
            user: "talk more"
            7 tools
    "#]]);
}

#[test]
fn context_of_a_front_end_precedes_the_message() {
    check(expect![[r#"
        create; say hi beside in /some/src
            fake/a: The workspace is /work.
            user: "in /some/src"
            user: "hi"
            7 tools
        create; import me hi | model hello; say more
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "hello"
            user: "more"
            7 tools
    "#]]);
}

#[test]
fn superseded_turns_are_not_sent() {
    check(expect![[r#"
        let two = create; say hi; text a; answer; say more; answer c look; done c; text b; answer
        two; instead t2 else
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "a"
            user: "else"
            7 tools
        two; instead t1 else
            fake/a: The workspace is /work.
            user: "else"
            7 tools
        two; compact; summary m6 so far; instead t2 else
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "a"
            user: "else"
            7 tools
        two; say third; instead t3 other
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "a"
            user: "more"
            assistant: "" c=look{}
              c=look ok:
            assistant: "b"
            user: "other"
            7 tools
    "#]]);
}

#[test]
fn replaced_messages_are_not_sent() {
    check(expect![[r#"
        create; say hi; text Hello; answer; replace me once | model upon; say more
            fake/a: The workspace is /work.
            user: "once"
            assistant: "upon"
            user: "more"
            7 tools
        create; say hi; text Hello; answer; later wait; replace me once; start t2
            fake/a: The workspace is /work.
            user: "wait"
            7 tools
        create; say hi; text Hello; answer; instruct be brief; move /else; say more
            fake/a: be brief | The workspace is /else.
            user: "hi"
            assistant: "Hello"
            user: "more"
            7 tools
        create; say hi worded <q>hi</q>
            fake/a: The workspace is /work.
            user: "<q>hi</q>"
            7 tools
    "#]]);
}

#[test]
fn reasoning_is_not_sent_as_text() {
    check(expect![[r#"
        create; say hi; thought hm; text Hello; thought hm; answer; say more
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "Hello"
            user: "more"
            7 tools
        create; say hi; thought hm; answer; say more
            fake/a: The workspace is /work.
            user: "hi"
            user: "more"
            7 tools
    "#]]);
}

#[test]
fn every_result_follows_its_call() {
    check(expect![[r#"
        let calls = create; say hi; text I look; answer a look {"p":1} + b edit + c nonsense
        calls; done a found; failed b read-only
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "I look" a=look{"p":1} b=edit{} c=nonsense{}
              a=look ok: found
              b=edit not ok: read-only
              c=nonsense not ok: unknown tool: nonsense
            7 tools
        calls; done a found; cancel; stopped b; say more
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "I look" a=look{"p":1} b=edit{} c=nonsense{}
              a=look ok: found
              b=edit not ok: killed
              c=nonsense not ok: the turn was stopped
            user: "more"
            7 tools
        create; say hi; answer a shell; recover
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "" a=shell{}
              a=shell not ok: the daemon stopped while this call was running; how far it got is not known
            7 tools
        rules ask=exec; create; say hi; answer a shell; assess a; deny a: no
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "" a=shell{}
              a=shell not ok: approval denied: no
            7 tools
        create; say hi; answer a look {"p":
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "" a=look"{\"p\":"
              a=look not ok: the arguments are not valid JSON: EOF while parsing a value at line 1 column 5
            7 tools
    "#]]);
}

#[test]
fn results_of_parallel_calls_keep_the_order_of_the_calls() {
    check(expect![[r#"
        create; say hi; answer a look + b look [1]; done b B; done a A
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "" a=look{} b=look[1]
              a=look ok: A
              b=look ok: B
            7 tools
    "#]]);
}

#[test]
fn an_incomplete_answer_is_left_out() {
    check(expect![[r#"
        create; say hi; text Hel; cancel; say more
            fake/a: The workspace is /work.
            user: "hi"
            user: "more"
            7 tools
        create; say hi; text Hel; recover
            fake/a: The workspace is /work.
            user: "hi"
            7 tools
    "#]]);
}

#[test]
fn a_retry_sees_the_same_history() {
    check(expect![[r#"
        let given = create; say one; answer a look; done a A; fails stream_cut; say two; text 2; answer
        given; start t1
            fake/a: The workspace is /work.
            user: "one"
            7 tools
        given; start t1; text 1; answer; say three
            fake/a: The workspace is /work.
            user: "one"
            assistant: "1"
            user: "two"
            assistant: "2"
            user: "three"
            7 tools
    "#]]);
}

#[test]
fn turns_keep_the_order_of_their_messages() {
    check(expect![[r#"
        let given = create; later one; later two; start t1; text 1
        given
            fake/a: The workspace is /work.
            user: "one"
            7 tools
        given; answer; start t2
            fake/a: The workspace is /work.
            user: "one"
            assistant: "1"
            user: "two"
            7 tools
    "#]]);
}

#[test]
fn a_summary_replaces_old_history() {
    check(expect![[r#"
        let given = create; say one; text 1; answer; say two; text 2; answer; compact
        given
            fake/a: The workspace is /work.
            user: "one"
            assistant: "1"
            user: "two"
            assistant: "2"
            user: "Summarize this conversation for yourself, because you will go on with only the summary"…
            7 tools
        given; summary m4 in short; say three
            fake/a: The workspace is /work.
            user: "Summary of the conversation so far:\nin short"
            user: "three"
            7 tools
        given; summary m4 in short; say three; text 3; answer; compact
            fake/a: The workspace is /work.
            user: "Summary of the conversation so far:\nin short"
            user: "three"
            assistant: "3"
            user: "Summarize this conversation for yourself, because you will go on with only the summary"…
            7 tools
        create; say one; text 1; answer; say two; fails context_overflow; summary m2 short
            fake/a: The workspace is /work.
            user: "Summary of the conversation so far:\nshort"
            user: "two"
            7 tools
    "#]]);
}

#[test]
fn a_summary_survives_messages_that_are_not_sent() {
    check(expect![[r#"
        create; say one; text 1; cancel; compact; summary m1 short; say two
            fake/a: The workspace is /work.
            user: "Summary of the conversation so far:\nshort"
            user: "two"
            7 tools
    "#]]);
}

#[test]
fn the_message_of_the_open_turn_is_never_summarized() {
    check(expect![[r#"
        create; say one; fails rejected; compact; summary m1 short; start t1
            fake/a: The workspace is /work.
            user: "one"
            7 tools
        create; say one; text 1; answer; later two; compact; summary m3 short; start t2
            fake/a: The workspace is /work.
            user: "one"
            assistant: "1"
            user: "two"
            7 tools
    "#]]);
}

#[test]
fn the_system_prompt_comes_first() {
    check(expect![[r#"
        create as Be kind.; system Be brief.; say hi
            fake/a: Be kind. | Be brief. | The workspace is /work.
            user: "hi"
            7 tools
    "#]]);
}

#[test]
fn a_verification_call_is_added_to_the_last_answer() {
    check(expect![[r#"
        let given = rules verify; create; say hi; answer a edit; done a
        given; text Done; answer; failed k1 1 test fails
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "" a=edit{}
              a=edit ok:
            assistant: "Done" k1=verify{}
              k1=verify not ok: 1 test fails
            7 tools
        given; answer; failed k1 1 test fails
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "" a=edit{} k1=verify{}
              a=edit ok:
              k1=verify not ok: 1 test fails
            7 tools
        given; text Done; answer; done k1 ok; say thanks
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "" a=edit{}
              a=edit ok:
            assistant: "Done" k1=verify{}
              k1=verify ok: ok
            user: "thanks"
            7 tools
    "#]]);
}

#[test]
fn files_are_named_and_loaded_later() {
    check(expect![[r#"
        create; attach a.png image/png; say see with image:a.png
            fake/a: The workspace is /work.
            user: "see" <image a.png image/png b10b 0 bytes>
            7 tools
        create; attach a.png image/png; say see with image:a.png on blind/b
            blind/b: The workspace is /work.
            user: "see" "[image a.png: this model takes no pictures; the tool `look` reads the text in it]"
            7 tools
        create; attach a.png image/png; say see with image:a.png; text Yes; answer; say and now on plain/b
            plain/b: The workspace is /work.
            user: "see" "[image a.png left out: this model does not take image parts]"
            assistant: "Yes"
            user: "and now"
            0 tools
        create; attach a.md text/plain; say with file:a.md on plain/b
            plain/b: The workspace is /work.
            user: "with file:a.md"
            0 tools
    "#]]);
}

fn show(session: &mut Session, prompt: &Prompt) -> Vec<String> {
    let system =
        format!("{}: {}", prompt.model, prompt.system.replace("\n\n", " | ").replace('\n', " "));
    let tools = format!("{} tools", prompt.tools.len());
    let messages = prompt.messages.iter().map(|message| line(session, message));
    [system].into_iter().chain(messages).chain([tools]).collect()
}

fn line(session: &mut Session, message: &PromptMessage) -> String {
    match message {
        PromptMessage::System(text) => format!("system: {text}"),
        PromptMessage::User(parts) => {
            let parts: Vec<String> = parts.iter().map(part).collect();
            format!("user: {}", parts.join(" "))
        }
        PromptMessage::Assistant { by: _, parts } => {
            let call = |call: &PromptCall| {
                format!(" {}={}{}", session.short(&call.call), call.tool, call.input)
            };
            let calls: String = assistant_calls(parts).map(call).collect();
            format!("assistant: {:?}{calls}", assistant_text(parts))
        }
        PromptMessage::Result { call, tool, text, media, ok } => {
            let ok = if *ok { "ok" } else { "not ok" };
            let media: String = media.iter().map(|media| format!(" {}", part(media))).collect();
            format!("  {}={tool} {ok}: {text}{media}", session.short(call))
        }
    }
}

fn part(part: &PromptPart) -> String {
    match part {
        PromptPart::Text(text) => match text.split_once('.') {
            Some((start, _)) if text.len() > 200 => format!("{start:?}…"),
            _ => format!("{text:?}"),
        },
        PromptPart::Media { kind, name, mime, blob, content, detail: _ } => {
            format!("<{} {name} {mime} {blob} {} bytes>", kind.name(), content.len())
        }
    }
}
