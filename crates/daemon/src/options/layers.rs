//! Merges the sources of options and records the source of each value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use quintet_dialects::DIALECTS;
use quintet_dialects::dialect::{Shape, Values};
use toml::{Table, Value};

use super::keys;
use crate::cli::Flags;
use crate::keyring::KeyringKeys;

/// All values that are set, by path.
#[derive(Debug, Default)]
pub(super) struct Layers {
    values: BTreeMap<String, SetValue>,
    /// The environment, for keys that name a variable.
    pub(super) environment: BTreeMap<String, String>,
    /// The keys that were found in the keyring.
    pub(super) keyring: KeyringKeys,
}

#[derive(Debug)]
struct SetValue {
    value: Value,
    source: String,
}

/// Reads defaults, file, environment and flags, in this order; later ones override earlier ones.
pub(super) fn load(flags: &Flags, environment: &[(String, String)]) -> Result<Layers> {
    let mut layers =
        Layers { environment: environment.iter().cloned().collect(), ..Layers::default() };
    for (path, _, default) in keys::all() {
        if let Some(default) = default {
            layers.set(path, parse(default).expect("defaults are TOML"), "default")?;
        }
    }
    for (path, default) in keys::listen() {
        layers.set(&path, Value::String(default.into()), "default")?;
    }
    if let Some(file) = &flags.config {
        layers.file(file)?;
    }
    for (name, value) in environment {
        layers.set_variable(name, value)?;
    }
    if let Some(dir) = &flags.data_dir {
        layers.set_text("data_dir", &dir.to_string_lossy(), "--data-dir")?;
    }
    for pair in &flags.listen {
        let (name, address) = pair
            .split_once('=')
            .with_context(|| format!("--listen wants PROTOCOL=ADDRESS, not {pair:?}"))?;
        layers.set_text(&format!("listen.{name}"), address, "--listen")?;
    }
    for pair in &flags.set {
        let (path, value) =
            pair.split_once('=').with_context(|| format!("--set wants KEY=VALUE, not {pair:?}"))?;
        layers.set_text(path, value, "--set")?;
    }
    Ok(layers)
}

impl Layers {
    fn file(&mut self, file: &Path) -> Result<()> {
        let name = file.display().to_string();
        let text =
            std::fs::read_to_string(file).with_context(|| format!("{name} cannot be read"))?;
        let table: Table = text.parse().map_err(|error| not_toml(&name, &text, &error))?;
        self.table("", &table, &name)
    }

    fn table(&mut self, prefix: &str, table: &Table, source: &str) -> Result<()> {
        for (key, value) in table {
            let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match value {
                Value::Table(inner) => self.table(&path, inner, source)?,
                value => self.set(&path, value.clone(), source)?,
            }
        }
        Ok(())
    }

    /// Sets a value from a variable: `QUINTET_LISTEN_HARNESS` is `listen.harness`. A variable that
    /// names no key belongs to another program.
    fn set_variable(&mut self, name: &str, value: &str) -> Result<()> {
        let mut variables = DIALECTS.iter().flat_map(|dialect| dialect.variables);
        if let Some(known) = variables.find(|known| known.name == name && !value.is_empty()) {
            return self.set_text(known.key, &format!("{}{value}", known.prefix), name);
        }
        let Some(rest) = name.strip_prefix("QUINTET_") else { return Ok(()) };
        match path_of(rest) {
            Some(path) => self.set_text(&path, value, name),
            None => Ok(()),
        }
    }

    /// Parses a value given as plain text by the type of its key.
    fn set_text(&mut self, path: &str, text: &str, source: &str) -> Result<()> {
        let shape = keys::shape_of(path).unwrap_or(Shape::Text);
        let value = match shape {
            Shape::Text | Shape::Secret | Shape::Path => Value::String(text.into()),
            Shape::List if !text.trim_start().starts_with('[') => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Value::Array(items.map(|item| Value::String(item.into())).collect())
            }
            Shape::Flag | Shape::Number | Shape::List | Shape::Tables => {
                parse(text).with_context(|| {
                    format!("{path} must be {}, not {text:?} ({source})", keys::shape_name(shape))
                })?
            }
        };
        self.set(path, value, source)
    }

    fn set(&mut self, path: &str, value: Value, source: &str) -> Result<()> {
        let Some(shape) = keys::shape_of(path) else {
            bail!("unknown key {path:?} ({source}); did you mean {:?}?", keys::nearest(path));
        };
        if !fits(&value, shape) {
            bail!("{path} must be {} ({source})", keys::shape_name(shape));
        }
        let value = if shape == Shape::Path { absolute(value)? } else { value };
        self.values.insert(path.into(), SetValue { value, source: source.into() });
        Ok(())
    }

    pub(super) fn str(&self, path: &str) -> Option<&str> {
        self.values.get(path)?.value.as_str()
    }

    pub(super) fn flag(&self, path: &str) -> Option<bool> {
        self.values.get(path)?.value.as_bool()
    }

    pub(super) fn number(&self, path: &str) -> Option<u64> {
        u64::try_from(self.values.get(path)?.value.as_integer()?).ok()
    }

    pub(super) fn list(&self, path: &str) -> Option<Vec<String>> {
        let items = self.values.get(path)?.value.as_array()?;
        Some(items.iter().filter_map(|item| item.as_str().map(Into::into)).collect())
    }

    /// A list of tables, each as JSON.
    pub(super) fn tables(&self, path: &str) -> Vec<serde_json::Value> {
        let items = self.values.get(path).and_then(|set| set.value.as_array());
        let tables = items.map(Vec::as_slice).unwrap_or_default();
        tables.iter().filter_map(|table| serde_json::to_value(table).ok()).collect()
    }

    /// The names in the middle of `providers.*.…`.
    pub(super) fn names(&self, section: &str) -> Vec<String> {
        let mut names: Vec<String> = self
            .values
            .keys()
            .filter_map(|path| {
                path.strip_prefix(section)?.strip_prefix('.')?.split('.').next().map(Into::into)
            })
            .collect();
        names.dedup();
        names
    }

    /// The source of a value.
    pub(super) fn source(&self, path: &str) -> &str {
        self.values.get(path).map_or("default", |set| &set.source)
    }

    /// The values of all keys that are secrets.
    pub(super) fn secrets(&self) -> Vec<String> {
        let secret = |(path, set): (&String, &SetValue)| {
            let is_secret = keys::shape_of(path) == Some(Shape::Secret);
            set.value.as_str().filter(|text| is_secret && !text.is_empty()).map(String::from)
        };
        self.values.iter().filter_map(secret).collect()
    }

    /// All settings as TOML, without secrets. The key of a section is only shown as present, with
    /// its source.
    pub(super) fn show(&self, keys: &BTreeMap<String, String>) -> String {
        let key = |(section, source): (&String, &String)| {
            let path = format!("{section}.api_key");
            (path.clone(), format!("{path} = \"***\"  # {source}\n"))
        };
        let line = |(path, set): (&String, &SetValue)| {
            let secret = keys::shape_of(path) == Some(Shape::Secret);
            let value = if secret { "\"***\"".into() } else { set.value.to_string() };
            (path.clone(), format!("{path} = {value}  # {}\n", set.source))
        };
        let lines: BTreeMap<_, _> =
            keys.iter().map(key).chain(self.values.iter().map(line)).collect();
        lines.into_values().collect()
    }
}

impl Values for Layers {
    fn text(&self, key: &str) -> Option<&str> {
        self.str(key)
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.flag(key)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.number(key)
    }

    fn list(&self, key: &str) -> Option<Vec<String>> {
        self.list(key)
    }

    fn tables(&self, key: &str) -> Vec<serde_json::Value> {
        self.tables(key)
    }

    fn source(&self, key: &str) -> &str {
        self.source(key)
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }
}

/// An absolute path; an empty one means none.
fn absolute(path: Value) -> Result<Value> {
    match path.as_str() {
        Some(path) if !path.is_empty() => {
            let path =
                std::path::absolute(path).with_context(|| format!("{path} is not a path"))?;
            text_of(path).map(Value::String)
        }
        _ => Ok(path),
    }
}

/// A path as text. Fails instead of replacing invalid characters, which would give another path.
fn text_of(path: PathBuf) -> Result<String> {
    path.into_os_string().into_string().map_err(|path| {
        anyhow::anyhow!("{} is not UTF-8: give an absolute path that is", path.display())
    })
}

/// The error for an invalid file. Names the line and does not quote it, because it may contain a key.
fn not_toml(name: &str, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    anyhow::anyhow!("{name} is not TOML: line {line}: {}", error.message())
}

fn parse(text: &str) -> Option<Value> {
    format!("value = {text}").parse::<Table>().ok()?.remove("value")
}

fn fits(value: &Value, shape: Shape) -> bool {
    match shape {
        Shape::Text | Shape::Secret | Shape::Path => value.is_str(),
        Shape::Flag => value.is_bool(),
        Shape::Number => value.as_integer().is_some_and(|number| number >= 0),
        Shape::List => value.as_array().is_some_and(|items| items.iter().all(Value::is_str)),
        Shape::Tables => value.as_array().is_some_and(|items| items.iter().all(Value::is_table)),
    }
}

fn path_of(variable: &str) -> Option<String> {
    let named = |pattern: &str| pattern.replace('.', "_").to_uppercase();
    if let Some(path) = keys::patterns().find(|path| named(path) == variable) {
        return Some(path.into_owned());
    }
    let rest = variable.strip_prefix("PROVIDERS_")?;
    keys::all().find_map(|(path, ..)| {
        let field = path.strip_prefix("providers.*.")?;
        let name =
            rest.strip_suffix(&named(field))?.strip_suffix('_').filter(|name| !name.is_empty())?;
        Some(format!("providers.{}.{field}", name.to_lowercase()))
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn a_path_that_is_not_utf_8_is_refused() {
        assert_eq!(text_of("/a/b".into()).unwrap(), "/a/b");
        let odd = OsString::from_vec(b"/a/\xff/b".to_vec());
        assert!(text_of(odd.into()).unwrap_err().to_string().contains("is not UTF-8"));
    }
}
