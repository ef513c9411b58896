//! Facts that a summary names as worth storing in memory.

/// Added to the request for a summary if memory may be written.
pub(super) const ASK_FOR_FACTS: &str = "After the summary, and only if this conversation holds \
something that should still be known in other conversations, such as lasting preferences, decisions \
or facts about people and the project, add a line that says REMEMBER: and below it one line for each, \
beginning with a dash. Leave out secrets and what only matters for the task at hand.";

const FACTS_MARK: &str = "REMEMBER:";

/// Maximum number of facts of one summary; each has at most `FACT_CHARS_LIMIT` characters.
const FACTS_LIMIT: usize = 20;
const FACT_CHARS_LIMIT: usize = 1000;

/// Splits a model's text into the summary and the facts after it.
pub(crate) fn parse_summary(words: &str) -> (String, Vec<String>) {
    let bare = |line: &str| line.trim().trim_matches(['*', '#', '_', ' ']).to_owned();
    let (mut marked, mut at) = (None, 0);
    for line in words.split_inclusive('\n') {
        if bare(line).starts_with(FACTS_MARK) {
            marked = Some((at, line));
        }
        at += line.len();
    }
    let Some((at, mark)) = marked else { return (words.to_owned(), Vec::new()) };
    let (summary, rest) = words.split_at(at);
    let first = bare(mark).trim_start_matches(FACTS_MARK).to_owned();
    let others = rest[mark.len()..].lines().map(str::to_owned);
    let facts = std::iter::once(first).chain(others).filter_map(|line| fact(&line));
    let facts = facts.take(FACTS_LIMIT).collect();
    match summary.trim() {
        // The history must not be replaced by an empty summary.
        "" => (words.to_owned(), facts),
        summary => (summary.to_owned(), facts),
    }
}

fn fact(line: &str) -> Option<String> {
    let fact = line.trim().trim_start_matches(['-', '*', '•']).trim();
    let nothing = ["", "none", "nothing", "n/a", "```"];
    let is_fact = !nothing.contains(&fact.trim_end_matches('.').to_lowercase().as_str());
    is_fact.then(|| fact.chars().take(FACT_CHARS_LIMIT).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &str, summary: &str, facts: &[&str]) {
        let (got, found) = parse_summary(words);
        assert_eq!((got.as_str(), found), (summary, facts.iter().map(|f| f.to_string()).collect()));
    }

    #[test]
    fn facts_follow_the_summary() {
        check(
            "We built it.\n\nREMEMBER:\n- likes tabs\n* lives in Bern\n\n- übt Deutsch\n",
            "We built it.",
            &["likes tabs", "lives in Bern", "übt Deutsch"],
        );
        check("Short.\n**REMEMBER:** likes tabs", "Short.", &["likes tabs"]);
        check("Short.\n## REMEMBER:\r\n- a\r\n", "Short.", &["a"]);
    }

    #[test]
    fn without_facts_there_is_only_the_summary() {
        check("Remember to test.\n", "Remember to test.\n", &[]);
        check("", "", &[]);
        check("Short.\nREMEMBER: none.\n", "Short.", &[]);
        check("Short.\nREMEMBER:\n- Nothing\n", "Short.", &[]);
    }

    #[test]
    fn a_summary_is_never_empty_and_facts_are_few() {
        check("REMEMBER:\n- a", "REMEMBER:\n- a", &["a"]);
        let many = format!("S\nREMEMBER:\n{}", "- x\n".repeat(100));
        assert_eq!(parse_summary(&many).1.len(), FACTS_LIMIT);
        let long = format!("S\nREMEMBER:\n- {}", "é".repeat(5000));
        assert_eq!(parse_summary(&long).1[0].chars().count(), FACT_CHARS_LIMIT);
    }
}
