//! The definitions of a file, from its syntax tree.
//!
//! The tree is walked without recursion, because its depth is controlled by the author of the file. The inside of
//! functions is local and not visited.

use tree_sitter::{Node, Tree, TreeCursor};

use super::name::Name;
use super::rules::{Meaning, Rules};

/// The longest name that is taken for one.
const SIGNATURE_LIMIT: usize = 120;
/// How many steps lead from a definition to its name at most, such as through pointers in C.
const STEPS_LIMIT: usize = 16;
/// The fields by which one comes nearer to a name.
const NEARER: [&str; 3] = ["declarator", "name", "property"];

/// Something that a file defines.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) text: Box<str>,
    pub(super) name: Name,
    pub(super) kind: &'static str,
    /// Counted from 1.
    pub(super) line: u32,
}

/// What a file defines, in the order of the lines.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) symbols: Box<[Symbol]>,
}

impl Outline {
    /// Reads a tree, whether it is whole or has errors in it.
    pub(super) fn of(rules: &Rules, tree: &Tree, source: &[u8]) -> Self {
        let mut reader = Reader { rules, source, depth: 0, symbols: Vec::new(), class_end: 0 };
        reader.walk(&mut tree.walk());
        reader.symbols.sort_by_key(|symbol| symbol.line);
        Self { symbols: reader.symbols.into() }
    }

    /// How much memory it takes, about.
    pub(super) fn size(&self) -> usize {
        let texts: usize = self.symbols.iter().map(|symbol| symbol.text.len()).sum();
        size_of_val(&*self.symbols) + texts
    }
}

struct Reader<'a> {
    rules: &'a Rules,
    source: &'a [u8],
    depth: usize,
    symbols: Vec<Symbol>,
    /// Where the last class ends that the walk came by.
    class_end: usize,
}

/// Whether the walk goes into a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Enter,
    Pass,
}

impl<'a> Reader<'a> {
    fn walk(&mut self, cursor: &mut TreeCursor<'_>) {
        loop {
            let node = cursor.node();
            let meaning = self.rules.meaning(node.kind_id());
            let inside = meaning.map_or(Inside::Enter, |meaning| self.visit(node, meaning));
            if inside == Inside::Enter && cursor.goto_first_child() {
                self.depth += 1;
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                self.depth -= 1;
            }
        }
    }

    fn visit(&mut self, node: Node<'_>, meaning: &Meaning) -> Inside {
        let in_class = node.start_byte() < self.class_end;
        if meaning.is_class {
            self.class_end = self.class_end.max(node.end_byte());
        }
        let fitting = meaning.definitions.iter().find(|row| row.fits(node, self.depth));
        let Some(row) = fitting.map(|row| row.row) else { return Inside::Enter };
        let Some(name) = node.child_by_field_name(row.name).and_then(|name| self.leaf(name)) else {
            return Inside::Enter;
        };
        let text = self.text(name);
        let is_function = matches!(row.kind, "function" | "method");
        self.symbols.push(Symbol {
            text: String::from_utf8_lossy(text).into(),
            name: Name::of(self.rules.language.family, text),
            kind: if is_function && in_class { "method" } else { row.kind },
            line: u32::try_from(name.start_position().row + 1).unwrap_or(u32::MAX),
        });
        if is_function { Inside::Pass } else { Inside::Enter }
    }

    /// The name itself, which may be deep in pointers, arrays and paths.
    fn leaf<'t>(&self, mut node: Node<'t>) -> Option<Node<'t>> {
        for _ in 0..STEPS_LIMIT {
            let nearer = NEARER.iter().find_map(|field| node.child_by_field_name(field));
            match nearer.or_else(|| node.kind().ends_with("_declarator").then(|| last(node))?) {
                Some(nearer) => node = nearer,
                None => break,
            }
        }
        let text = self.text(node);
        let is_name = !text.is_empty() && text.len() <= SIGNATURE_LIMIT && !text.contains(&b'\n');
        // A pattern such as `{ a, b }` or `a, b` is not a name.
        let is_pattern = matches!(text.first(), Some(b'{' | b'[' | b'(')) || text.contains(&b',');
        (is_name && !is_pattern).then_some(node)
    }

    fn text(&self, node: Node<'_>) -> &'a [u8] {
        self.source.get(node.byte_range()).unwrap_or_default()
    }
}

fn last(node: Node<'_>) -> Option<Node<'_>> {
    let count = u32::try_from(node.named_child_count()).ok()?;
    node.named_child(count.checked_sub(1)?)
}
