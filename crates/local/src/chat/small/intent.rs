//! Guesses the intent of a message from its English words.

/// Words that request a change.
const CHANGES: &[&str] = &[
    "add",
    "append",
    "bump",
    "change",
    "commit",
    "convert",
    "correct",
    "create",
    "decrease",
    "delete",
    "drop",
    "edit",
    "extract",
    "fix",
    "give",
    "implement",
    "increase",
    "insert",
    "make",
    "modify",
    "move",
    "put",
    "refactor",
    "remove",
    "rename",
    "repair",
    "replace",
    "rewrite",
    "set",
    "switch",
    "update",
    "write",
];
/// Words that begin a question.
const QUESTIONS: &[&str] = &[
    "what",
    "which",
    "where",
    "who",
    "whose",
    "how",
    "why",
    "when",
    "is",
    "are",
    "was",
    "were",
    "does",
    "do",
    "did",
    "has",
    "have",
    "explain",
    "describe",
    "show",
    "tell",
    "list",
    "find",
    "summarize",
    "there",
];
/// Words that distinguish a question about the workspace from small talk.
const WORKSPACE: &[&str] = &[
    "branch",
    "bug",
    "class",
    "code",
    "commit",
    "committed",
    "config",
    "configured",
    "constant",
    "directory",
    "error",
    "exception",
    "file",
    "files",
    "folder",
    "function",
    "functions",
    "here",
    "line",
    "lines",
    "method",
    "module",
    "package",
    "program",
    "project",
    "raise",
    "raises",
    "repo",
    "repository",
    "script",
    "server",
    "test",
    "tests",
    "this",
    "variable",
    "version",
];

/// True if a message requests a change, not only an answer.
pub(crate) fn wants_change(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = words_in(&text);
    let polite = ["can", "could", "would", "will", "please"];
    let asks = words.first().is_some_and(|first| {
        let marked = text.trim_end().ends_with('?') && !polite.contains(&first.as_str());
        marked || QUESTIONS.contains(&first.as_str())
    });
    let forbids =
        ["don't change", "do not change", "without changing", "don't edit", "do not edit"];
    let forbids = forbids.iter().any(|words| text.contains(words));
    !asks && !forbids && words.iter().any(|word| CHANGES.contains(&word.as_str()))
}

/// True if a message states that something does not work.
pub(crate) fn is_repair(text: &str) -> bool {
    let signs =
        ["fix", "fails", "error", "stops", "passes", "pass", "broken", "syntaxerror", "crashes"];
    let words = words_in(text);
    let says = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    // A request to rename something is no repair, even if it mentions a fix.
    says(&signs) && !says(&["rename"])
}

/// True if a message is small talk: about nothing in the workspace.
pub(crate) fn is_small_talk(text: &str) -> bool {
    let to_model = ["you", "your", "hello", "hi", "thanks"];
    words_in(text).iter().any(|word| to_model.contains(&word.as_str()))
        && !asks_workspace(text)
        && !wants_change(text)
}

/// True if a message requests an addition to a file: "add a function", "append a section".
pub(crate) fn is_addition(text: &str) -> bool {
    let words = words_in(text);
    let mut words = words.iter().map(String::as_str).skip_while(|word| *word == "please");
    let adds = words.next().is_some_and(|first| ["add", "append"].contains(&first));
    let fill = |word: &&str| ["a", "an", "another", "the", "new", "second"].contains(word);
    let thing = words.find(|word| !fill(word));
    let things = ["function", "class", "section", "test", "paragraph", "helper", "line"];
    adds && thing.is_some_and(|thing| things.contains(&thing))
}

/// True if a message is a question.
pub(crate) fn asks(text: &str) -> bool {
    let text = text.to_lowercase();
    text.trim_end().ends_with('?')
        || text.split_whitespace().next().is_some_and(|first| QUESTIONS.contains(&first))
}

/// True if a message is a question that only the workspace can answer.
pub(crate) fn asks_workspace(text: &str) -> bool {
    let asks = asks(text);
    let text = text.to_lowercase();
    let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    asks && (text.contains("()")
        || words.any(|word| word.contains('_') || WORKSPACE.contains(&word)))
}

/// The words of a text in lower case.
pub(crate) fn words_in(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let inner = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '\'';
    let words = text.split(|letter: char| !inner(letter)).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
