//! Prompts that servers offer: their list, what a person types after a name, and what they say.

use quintet_kernel::port::{PromptArgument, PromptContent};
use rmcp::model::{ContentBlock, ResourceContents};
use serde_json::{Map, Value};

use super::result::{decode, file_name, media_kind};

/// How many prompts of one server are taken.
pub(super) const PROMPTS_LIMIT: usize = 200;
/// How many arguments of one prompt are taken.
const ARGUMENTS_LIMIT: usize = 32;
/// How long a description may be.
const DESCRIPTION_LIMIT: usize = 1024;

/// A prompt as its server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedPrompt {
    /// The server's own name for it.
    pub(super) name: String,
    pub(super) description: String,
    pub(super) arguments: Vec<PromptArgument>,
}

/// The usable prompts of a list. Those that nobody could type are left out.
pub(super) fn read(prompts: &[Value]) -> Vec<ListedPrompt> {
    prompts.iter().take(PROMPTS_LIMIT).filter_map(read_one).collect()
}

fn read_one(prompt: &Value) -> Option<ListedPrompt> {
    let is_typed = |name: &&str| !name.is_empty() && !name.contains(char::is_whitespace);
    let name = prompt["name"].as_str().filter(is_typed)?.to_owned();
    let words = [&prompt["description"], &prompt["title"]].into_iter().filter_map(Value::as_str);
    let text = words.map(str::trim).find(|text| !text.is_empty()).unwrap_or_default();
    let description = text[..text.floor_char_boundary(DESCRIPTION_LIMIT)].to_owned();
    let given = prompt["arguments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let argument = |argument: &Value| {
        let name = argument["name"].as_str()?.to_owned();
        Some(PromptArgument { name, required: argument["required"] == true })
    };
    let arguments = given.iter().take(ARGUMENTS_LIMIT).filter_map(argument).collect();
    Some(ListedPrompt { name, description, arguments })
}

/// The arguments that a person typed: `name=value` pairs, or values in the order of the arguments, of which the
/// last takes the rest of the line. Fails if one is missing.
pub(super) fn arguments(
    declared: &[PromptArgument],
    typed: &str,
) -> Result<Map<String, Value>, String> {
    let words = words(typed);
    let pair = |word: &String| {
        let (name, value) = word.split_once('=')?;
        let known = declared.iter().any(|argument| argument.name == name);
        known.then(|| (name.to_owned(), Value::from(value)))
    };
    let pairs: Option<Map<String, Value>> = words.iter().map(pair).collect();
    let given = pairs.unwrap_or_else(|| in_order(declared, typed, words));
    let is_missing =
        |argument: &&PromptArgument| argument.required && !given.contains_key(&argument.name);
    let missing: Vec<&str> =
        declared.iter().filter(is_missing).map(|argument| argument.name.as_str()).collect();
    if missing.is_empty() { Ok(given) } else { Err(format!("it needs {}", missing.join(", "))) }
}

fn in_order(
    declared: &[PromptArgument],
    typed: &str,
    mut words: Vec<String>,
) -> Map<String, Value> {
    if let [only] = declared {
        let words = if words.len() == 1 { words.remove(0) } else { typed.trim().to_owned() };
        return [(only.name.clone(), words.into())].into_iter().collect();
    }
    if let Some(last) = declared.len().checked_sub(1)
        && words.len() > declared.len()
    {
        let rest = words.split_off(last).join(" ");
        words.push(rest);
    }
    let value = |(argument, word): (&PromptArgument, String)| (argument.name.clone(), word.into());
    declared.iter().zip(words).map(value).collect()
}

/// Words as in a shell: quotes hold spaces together.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in text.chars() {
        match quote {
            Some(end) if letter == end => quote = None,
            None if letter == '"' || (letter == '\'' && word.is_none()) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            Some(_) | None => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// What a prompt says. Where a server wrote parts of the model, each message is headed with its role, because a
/// person sends one message. Fails if the answer is none.
pub(super) fn contents(answer: &mut Value) -> Result<Vec<PromptContent>, String> {
    let Value::Array(messages) = answer["messages"].take() else {
        return Err("prompts/get: the answer has no messages".to_owned());
    };
    let is_dialogue = messages.iter().any(|message| message["role"] == "assistant");
    let (mut contents, mut files) = (Vec::new(), 0);
    for mut message in messages {
        if is_dialogue {
            let role = message["role"].as_str().unwrap_or("user");
            contents.push(PromptContent::Text(format!("[{role}]")));
        }
        let block = serde_json::from_value(message["content"].take());
        let block = block.map_err(|error| format!("prompts/get: {error}"))?;
        contents.push(content(block, &mut files));
    }
    Ok(contents)
}

fn content(block: ContentBlock, files: &mut usize) -> PromptContent {
    match block {
        ContentBlock::Text(text) => PromptContent::Text(text.text),
        ContentBlock::Image(image) => file(&image.data, image.mime_type, None, files),
        ContentBlock::Audio(audio) => file(&audio.data, audio.mime_type, None, files),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                PromptContent::Text(format!("[resource <{uri}>]\n{text}"))
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let mime = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                file(&blob, mime, Some(&uri), files)
            }
            other => as_it_is(&other),
        },
        ContentBlock::ResourceLink(link) => {
            PromptContent::Text(format!("[resource {} <{}>]", link.name, link.uri))
        }
        other => as_it_is(&other),
    }
}

fn as_it_is(value: &impl serde::Serialize) -> PromptContent {
    PromptContent::Text(serde_json::to_string(value).unwrap_or_default())
}

fn file(data: &str, mime: String, uri: Option<&str>, files: &mut usize) -> PromptContent {
    let Ok(content) = decode(data) else {
        return PromptContent::Text(format!("[a file of type {mime} that is not valid base64]"));
    };
    *files += 1;
    let name = file_name(*files, &mime, uri);
    PromptContent::File { kind: media_kind(&mime), name, mime, content }
}

#[cfg(test)]
mod tests;
