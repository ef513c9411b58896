//! The rows of a language in the form in which a tree is read: by the numbers of its grammar.

use std::num::NonZeroU16;

use tree_sitter::Node;

use super::languages::{Definition, Language, Reference, When};

/// How the nodes of a language are to be read.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) language: &'static Language,
    pub(super) grammar: tree_sitter::Language,
    /// What a node means, by the number of its kind; most mean nothing.
    meanings: Vec<Option<Meaning>>,
}

/// What a kind of node means.
#[derive(Debug, Default)]
pub(super) struct Meaning {
    pub(super) definitions: Vec<Defining>,
    pub(super) references: Vec<Using>,
    pub(super) is_class: bool,
}

/// A row about definitions.
#[derive(Debug)]
pub(super) struct Defining {
    pub(super) row: &'static Definition,
    /// The kinds of [`When::Is`].
    kinds: Vec<u16>,
}

/// A row about references.
#[derive(Debug)]
pub(super) struct Using {
    inside: Vec<u16>,
    pub(super) field: Option<NonZeroU16>,
    pub(super) capital: bool,
}

impl Rules {
    pub(super) fn of(language: &'static Language) -> Self {
        let grammar = (language.grammar)();
        let meanings = (0..grammar.node_kind_count()).map(|_| None).collect();
        let mut rules = Self { language, grammar, meanings };
        for row in language.definitions {
            rules.define(row);
        }
        for row in language.references {
            rules.refer(row);
        }
        for class in language.classes {
            rules.change(class, |meaning| meaning.is_class = true);
        }
        rules
    }

    /// What nodes of this kind mean.
    pub(super) fn meaning(&self, kind: u16) -> Option<&Meaning> {
        // The number of an error is the largest there is.
        self.meanings.get(usize::from(kind))?.as_ref()
    }

    fn define(&mut self, row: &'static Definition) {
        let kinds = match row.when {
            When::Is(_, kinds) => kinds.iter().map(|kind| self.number(kind)).collect(),
            When::Always | When::Within(_) | When::Has(_) => Vec::new(),
        };
        self.change(row.node, |meaning| meaning.definitions.push(Defining { row, kinds }));
    }

    fn refer(&mut self, row: &'static Reference) {
        let inside = row.inside.iter().map(|kind| self.number(kind)).collect();
        let field = row.field.and_then(|field| self.grammar.field_id_for_name(field));
        let using = Using { inside, field, capital: row.capital };
        self.change(row.leaf, |meaning| meaning.references.push(using));
    }

    fn change(&mut self, kind: &str, change: impl FnOnce(&mut Meaning)) {
        let kind = usize::from(self.number(kind));
        if let Some(meaning) = self.meanings.get_mut(kind) {
            change(meaning.get_or_insert_default());
        }
    }

    fn number(&self, kind: &str) -> u16 {
        self.grammar.id_for_node_kind(kind, true)
    }
}

impl Defining {
    /// Whether such a node defines something, `depth` below the root.
    pub(super) fn fits(&self, node: Node<'_>, depth: usize) -> bool {
        match self.row.when {
            When::Always => true,
            When::Within(most) => depth <= most,
            When::Has(field) => node.child_by_field_name(field).is_some(),
            When::Is(field, _) => node
                .child_by_field_name(field)
                .is_some_and(|value| self.kinds.contains(&value.kind_id())),
        }
    }
}

impl Using {
    /// Whether a leaf in nodes of these kinds is a use; the last is the innermost.
    pub(super) fn is_inside(&self, ancestors: &[u16]) -> bool {
        let found = ancestors.iter().rev();
        self.inside.len() <= ancestors.len() && self.inside.iter().zip(found).all(|(a, b)| a == b)
    }
}
