//! Removes secrets of the environment from texts for models.

/// The replacement for a secret.
const HIDDEN: &str = "[redacted]";

/// Variables that are sent to models.
const CONTEXT_VARIABLES: [&str; 22] = [
    "CARGO_HOME",
    "COLORTERM",
    "CONDA_DEFAULT_ENV",
    "EDITOR",
    "GOPATH",
    "HOME",
    "HOSTNAME",
    "JAVA_HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "NODE_ENV",
    "PATH",
    "PWD",
    "PYTHONPATH",
    "RUSTUP_HOME",
    "SHELL",
    "TERM",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
    "VISUAL",
];

const SECRET_NAMES: [&str; 12] = [
    "PASSWORD",
    "PASSWD",
    "PASS",
    "SECRET",
    "TOKEN",
    "KEY",
    "API",
    "AUTH",
    "CREDENTIAL",
    "PRIVATE",
    "COOKIE",
    "SESSION",
];

/// Prefixes of keys of well-known services.
const SECRET_PREFIXES: [&str; 14] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "eyJ",
];

/// True if a variable is sent to models.
pub(super) fn is_context_variable(name: &str) -> bool {
    CONTEXT_VARIABLES.contains(&name) || is_secret_name(name)
}

/// The value of a variable, redacted if it is secret.
pub(super) fn value(name: &str, value: &str) -> String {
    if is_secret_name(name) || is_secret(value) { HIDDEN.into() } else { text(value, &[]) }
}

/// The secret values of an environment.
pub(super) fn secrets<'a>(env: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let hidden = |(name, value): &(&str, &str)| is_secret_name(name) || is_secret(value);
    // Short values are often normal words.
    let long = |(_, value): &(&str, &str)| value.len() >= 8;
    env.filter(hidden).filter(long).map(|(_, value)| value.to_owned()).collect()
}

/// Redacts these secrets, and everything that looks like one, in a text.
pub(super) fn text(text: &str, secrets: &[String]) -> String {
    let known = secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN));
    let word = |word: &str| {
        let bare = word.trim_end();
        let begins = bare.rfind(['=', ':', '"', '\'', '/', '@', '(']).map_or(0, |at| at + 1);
        let space = &word[bare.len()..];
        if is_login(bare) {
            format!("{HIDDEN}{space}")
        } else if is_secret(&bare[begins..]) {
            format!("{}{HIDDEN}{space}", &bare[..begins])
        } else {
            word.to_owned()
        }
    };
    known.split_inclusive(char::is_whitespace).map(word).collect()
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    let exceptions = ["SSH_AUTH_SOCK", "XDG_SESSION_TYPE", "XDG_SESSION_ID", "DESKTOP_SESSION"];
    !exceptions.contains(&name.as_str()) && SECRET_NAMES.iter().any(|word| name.contains(word))
}

fn is_secret(value: &str) -> bool {
    let value = value.trim_matches(['"', '\'', ',', ';', ')']);
    let known = SECRET_PREFIXES.iter().any(|begin| value.starts_with(begin));
    value.len() >= 16 && known && value.bytes().any(|b| b.is_ascii_digit())
}

/// `https://name:password@host`.
fn is_login(word: &str) -> bool {
    let login =
        word.split_once("://").and_then(|(_, rest)| rest.split('/').next()?.split_once('@'));
    login.is_some_and(|(login, _)| login.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_redacted_by_name_and_by_value() {
        for (name, given, shown) in [
            ("USER", "anna", "anna"),
            ("OPENAI_API_KEY", "x", HIDDEN),
            ("DB_PASSWORD", "hunter2", HIDDEN),
            ("EDITOR", "sk-abcdefghijklmnop1234", HIDDEN),
            ("HOME", "/home/anna", "/home/anna"),
            ("PATH", "/usr/bin:/bin", "/usr/bin:/bin"),
            ("HOME", "https://anna:hunter2@host/x", HIDDEN),
        ] {
            assert_eq!(value(name, given), shown, "{name}={given}");
        }
    }

    #[test]
    fn secrets_are_redacted_in_text() {
        let known = secrets([("MY_TOKEN", "correct-horse"), ("USER", "anna")].into_iter());
        assert_eq!(known, ["correct-horse"]);
        let given = "curl -H 'X: correct-horse' TOKEN=ghp_0123456789abcdef0123 for anna\n";
        assert_eq!(text(given, &known), "curl -H 'X: [redacted]' TOKEN=[redacted] for anna\n");
    }
}
