//! What a file defines and which names it uses, read from its syntax tree.
//!
//! The tree is walked without recursion: its depth is in the hands of whoever wrote the file.

use std::hash::{DefaultHasher, Hash, Hasher};

use tree_sitter::{Node, Tree, TreeCursor};

use super::languages::Family;
use super::rules::{Meaning, Rules, Using};

/// The longest name that is taken for one.
const LONGEST: usize = 120;
/// How many steps lead from a definition to its name at most, such as through pointers in C.
const STEPS: usize = 16;
/// The fields by which one comes nearer to a name.
const NEARER: [&str; 3] = ["declarator", "name", "property"];

/// A name as it is compared: by a number, so that what a file uses costs little to remember. Two
/// names with one number would be ranked as one, which no one would see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name(u64);

impl Name {
    pub(super) fn of(family: Family, text: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        family.hash(&mut hasher);
        text.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Something that a file defines.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) text: Box<str>,
    pub(super) name: Name,
    pub(super) kind: &'static str,
    /// Counted from 1.
    pub(super) line: u32,
}

/// What a file defines, and how often it uses a name other than to define it.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// In the order of their lines.
    pub(super) symbols: Box<[Symbol]>,
    /// In the order of the names.
    pub(super) uses: Box<[(Name, u32)]>,
}

impl Outline {
    /// Reads a tree, whether it is whole or has errors in it.
    pub(super) fn of(rules: &Rules, tree: &Tree, source: &[u8]) -> Self {
        let mut reader = Reader::new(rules, source);
        reader.walk(&mut tree.walk());
        reader.symbols.sort_by_key(|symbol| symbol.line);
        Self { symbols: reader.symbols.into(), uses: counted(reader.uses) }
    }

    /// How much memory it takes, about.
    pub(super) fn size(&self) -> usize {
        let texts: usize = self.symbols.iter().map(|symbol| symbol.text.len()).sum();
        size_of_val(&*self.symbols) + size_of_val(&*self.uses) + texts
    }
}

fn counted(mut names: Vec<Name>) -> Box<[(Name, u32)]> {
    names.sort_unstable();
    names.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
}

struct Reader<'a> {
    rules: &'a Rules,
    source: &'a [u8],
    /// The kinds of the nodes that the present one is in.
    ancestors: Vec<u16>,
    symbols: Vec<Symbol>,
    uses: Vec<Name>,
    /// Where names of definitions begin that the walk has yet to come by.
    ahead: Vec<usize>,
    /// Where the outermost function ends that the walk came by; what is before is local to it.
    function_end: usize,
    class_end: usize,
}

impl<'a> Reader<'a> {
    fn new(rules: &'a Rules, source: &'a [u8]) -> Self {
        Self {
            rules,
            source,
            ancestors: Vec::new(),
            symbols: Vec::new(),
            uses: Vec::new(),
            ahead: Vec::new(),
            function_end: 0,
            class_end: 0,
        }
    }

    fn walk(&mut self, cursor: &mut TreeCursor<'_>) {
        loop {
            let node = cursor.node();
            let kind = node.kind_id();
            if let Some(meaning) = self.rules.meaning(kind) {
                self.visit(node, cursor, meaning);
            }
            if cursor.goto_first_child() {
                self.ancestors.push(kind);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                self.ancestors.pop();
            }
        }
    }

    fn visit(&mut self, node: Node<'_>, cursor: &TreeCursor<'_>, meaning: &Meaning) {
        if meaning.references.iter().any(|using| self.uses(using, node, cursor)) {
            self.refer(node);
        }
        if node.start_byte() >= self.function_end {
            self.define(node, meaning);
        }
        if meaning.is_class {
            self.class_end = self.class_end.max(node.end_byte());
        }
    }

    fn uses(&self, using: &Using, node: Node<'_>, cursor: &TreeCursor<'_>) -> bool {
        using.is_inside(&self.ancestors)
            && (!using.capital || self.text(node).first().is_some_and(u8::is_ascii_uppercase))
            && (using.field.is_none() || using.field == cursor.field_id())
    }

    fn refer(&mut self, node: Node<'_>) {
        if let Some(at) = self.ahead.iter().position(|start| *start == node.start_byte()) {
            self.ahead.swap_remove(at);
        } else if node.byte_range().len() <= LONGEST {
            self.uses.push(self.name(self.text(node)));
        }
    }

    fn define(&mut self, node: Node<'_>, meaning: &Meaning) {
        let depth = self.ancestors.len();
        let fitting = meaning.definitions.iter().find(|row| row.fits(node, depth));
        let Some(row) = fitting.map(|row| row.row) else { return };
        let Some(name) = node.child_by_field_name(row.name).and_then(|name| self.leaf(name)) else {
            return;
        };
        let text = self.text(name);
        let is_function = matches!(row.kind, "function" | "method");
        let in_class = node.start_byte() < self.class_end;
        self.symbols.push(Symbol {
            text: String::from_utf8_lossy(text).into(),
            name: self.name(text),
            kind: if is_function && in_class { "method" } else { row.kind },
            line: u32::try_from(name.start_position().row + 1).unwrap_or(u32::MAX),
        });
        self.ahead.push(name.start_byte());
        if is_function {
            self.function_end = node.end_byte();
        }
    }

    /// The name itself, which may be deep in pointers, arrays and paths.
    fn leaf<'t>(&self, mut node: Node<'t>) -> Option<Node<'t>> {
        for _ in 0..STEPS {
            let nearer = NEARER.iter().find_map(|field| node.child_by_field_name(field));
            match nearer.or_else(|| node.kind().ends_with("_declarator").then(|| last(node))?) {
                Some(nearer) => node = nearer,
                None => break,
            }
        }
        let text = self.text(node);
        let is_name = !text.is_empty() && text.len() <= LONGEST && !text.contains(&b'\n');
        // A pattern such as `{ a, b }` is no name.
        let is_pattern = matches!(text.first(), Some(b'{' | b'[' | b'('));
        (is_name && !is_pattern).then_some(node)
    }

    fn text(&self, node: Node<'_>) -> &'a [u8] {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn name(&self, text: &[u8]) -> Name {
        Name::of(self.rules.language.family, text)
    }
}

fn last(node: Node<'_>) -> Option<Node<'_>> {
    let count = u32::try_from(node.named_child_count()).ok()?;
    node.named_child(count.checked_sub(1)?)
}
