//! Shortens a passage around the words of a query.

/// Maximum length of an excerpt, in characters.
const EXCERPT_LIMIT: usize = 600;

/// Characters shown before the first match.
const CONTEXT_LIMIT: usize = 120;

/// As much of a text as fits, around its first word of the query.
pub(crate) fn excerpt(text: &str, words: &[String]) -> String {
    let chars: Vec<char> = text.trim().chars().collect();
    if chars.len() <= EXCERPT_LIMIT {
        return chars.into_iter().collect();
    }
    let plain: Vec<char> = chars.iter().map(|c| lower(*c)).collect();
    let first = words.iter().filter_map(|word| position(&plain, word)).min().unwrap_or(0);
    let start = first.saturating_sub(CONTEXT_LIMIT).min(chars.len() - EXCERPT_LIMIT);
    let end = start + EXCERPT_LIMIT;
    let body: String = chars[start..end].iter().collect();
    let ends = [start > 0, end < chars.len()].map(|cut| if cut { "…" } else { "" });
    format!("{}{}{}", ends[0], body.trim(), ends[1])
}

fn position(text: &[char], word: &str) -> Option<usize> {
    let word: Vec<char> = word.chars().map(lower).collect();
    text.windows(word.len().max(1)).position(|window| *window == *word)
}

fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excerpt_contains_the_match() {
        let text = format!("{} ÜBERALL {}", "vor ".repeat(400), "nach ".repeat(400));
        let shown = excerpt(&text, &["nirgends".into(), "überall".into()]);
        assert!(shown.contains("ÜBERALL") && shown.starts_with('…') && shown.ends_with('…'));
        assert!(shown.chars().count() <= EXCERPT_LIMIT + 2);
        assert_eq!(excerpt(" short \n", &["short".into()]), "short");
        assert!(excerpt(&text, &[]).starts_with("vor"));
    }
}
