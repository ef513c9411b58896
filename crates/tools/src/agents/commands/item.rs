//! The commands in one line of prose: an item of a list, or what comes after `Verify:`.

/// Words that may join commands.
const JOINING: [&str; 3] = ["and", "then", "&&"];
/// Words that introduce a command.
const LEADING: [&str; 3] = ["run", "execute", "use"];

/// The commands that a line names; none if it only talks about them.
pub(super) fn command_of(line: &str) -> Vec<String> {
    let line = line.trim();
    let pieces: Vec<&str> = line.split('`').collect();
    let spans = if pieces.len() < 3 { plain(line) } else { coded(&pieces) };
    let clean = spans.into_iter().map(|span| span.trim().trim_start_matches("$ ").trim());
    clean.filter(|span| !span.is_empty() && !span.starts_with('#')).map(str::to_owned).collect()
}

/// A line without code is a command if it begins like one: prose begins with a capital letter, and
/// a label ends with a colon.
fn plain(line: &str) -> Vec<&str> {
    let first = line.trim_start_matches("$ ").split_whitespace().next().unwrap_or_default();
    let begins =
        first.starts_with(|c: char| c.is_ascii_lowercase() || matches!(c, '.' | '/' | '_'));
    let assigns = first.split_once('=').is_some_and(|(name, _)| !name.is_empty());
    let ends = line.ends_with([':', '.', ',', ';', '?', '!']) && !line.ends_with("...");
    if (begins || assigns) && !ends || line.ends_with("/...") { vec![line] } else { Vec::new() }
}

/// The first piece of code if nothing but a label or `run` comes before it, and those that are
/// joined to it by nothing but `and` and the like.
fn coded<'a>(pieces: &[&'a str]) -> Vec<&'a str> {
    let lead = pieces[0].trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_'));
    let leads = lead.is_empty()
        || lead.ends_with(':')
        || LEADING.iter().any(|word| lead.eq_ignore_ascii_case(word));
    if !leads {
        return Vec::new();
    }
    let spans = pieces[1..].chunks(2);
    let mut taken = Vec::new();
    for span in spans {
        let [code, after] = span else { break };
        taken.push(*code);
        if !joins(after) {
            break;
        }
    }
    taken
}

fn joins(text: &str) -> bool {
    let mut words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
    words.all(|word| word.is_empty() || JOINING.contains(&word)) && !text.is_empty()
}
