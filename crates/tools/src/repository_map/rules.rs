//! The rows of a language in the form in which a tree is read: by the numbers of its grammar.

use tree_sitter::Node;

use super::languages::{Definition, Language, When};

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
    pub(super) is_class: bool,
}

/// A row about definitions.
#[derive(Debug)]
pub(super) struct Defining {
    pub(super) row: &'static Definition,
    /// The kinds of [`When::Is`].
    kinds: Vec<u16>,
}

impl Rules {
    pub(super) fn of(language: &'static Language) -> Self {
        let grammar = (language.grammar)();
        let meanings = (0..grammar.node_kind_count()).map(|_| None).collect();
        let mut rules = Self { language, grammar, meanings };
        for row in language.definitions {
            rules.define(row);
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
