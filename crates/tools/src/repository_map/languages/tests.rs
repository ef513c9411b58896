//! Every row names what its grammar knows, and every language gives its symbols.

use std::collections::BTreeSet;

use tree_sitter::Parser;

use super::*;
use crate::blocking::CancelFlag;
use crate::repository_map::name::Name;
use crate::repository_map::parse;

#[test]
fn the_grammars_know_all_rows() {
    for language in ALL {
        let grammar = (language.grammar)();
        let check_kind = |kind: &str| {
            let id = grammar.id_for_node_kind(kind, true);
            assert_ne!(id, 0, "{:?} has no {kind}", language.extensions);
        };
        let check_field = |field: &str| {
            let id = grammar.field_id_for_name(field);
            assert!(id.is_some(), "{:?} has no field {field}", language.extensions);
        };
        for row in language.definitions {
            check_kind(row.node);
            check_field(row.name);
            match row.when {
                When::Always | When::Within(_) => (),
                When::Has(field) => check_field(field),
                When::Is(field, kinds) => {
                    check_field(field);
                    kinds.iter().for_each(|kind| check_kind(kind));
                }
            }
        }
        language.classes.iter().for_each(|kind| check_kind(kind));
    }
}

/// Checks what the parser finds that a file defines, and which names a skim finds used and defined.
#[track_caller]
fn check(path: &str, source: &str, defined: &str, skim: [&str; 2]) {
    let (flag, mut parser) = (CancelFlag::default(), Parser::new());
    let got = parse::outline(&mut parser, path.as_ref(), source.as_bytes(), &flag);
    let symbols = got.symbols.iter();
    let symbols = symbols.map(|symbol| format!("{} {} {}", symbol.line, symbol.kind, symbol.text));
    assert_eq!(symbols.collect::<Vec<_>>().join("\n"), defined.trim(), "{path}");
    let got = parse::skim(&mut parser, path.as_ref(), source.as_bytes(), &flag);
    let family = rules(path.as_ref(), source.as_bytes()).unwrap().language.family;
    let name = |word: &str| Name::of(family, word.as_bytes());
    let used = |word: &str| got.uses.iter().any(|(used, _)| *used == name(word));
    let words = [words(source, used), words(source, |word| got.defined.contains(&name(word)))];
    assert_eq!(words, skim, "{path}");
}

/// The words of a text that are so, sorted.
fn words(text: &str, are: impl Fn(&str) -> bool) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
    let words: BTreeSet<_> = words.filter(|word| are(word)).collect();
    words.into_iter().collect::<Vec<_>>().join(" ")
}

#[test]
fn rust() {
    let source = "
use crate::{helper, Other as Renamed};
pub const MAX: usize = 3;
static HERE: u8 = 1;
pub struct Turn<T> { path: T }
pub(crate) enum Way { Up }
union Bits { a: u8 }
type Short = Turn<u8>;
trait Port { fn dial(&self); fn hang_up(&self) {} }
impl<T> Port for Turn<T> {
    fn dial(&self) { fn local() {} struct Inner; let path = self.path.send(MAX); lines::take::<u8>(path) }
}
macro_rules! shout { () => {} }
mod deep { pub async fn far() { shout!(); x.map::<u8>(y) } }
";
    let defined = "
3 const MAX
4 static HERE
5 struct Turn
6 enum Way
7 union Bits
8 type Short
9 trait Port
9 method dial
9 method hang_up
10 method dial
13 macro shout
14 function far";
    let defined = defined.replace("10 method dial", "11 method dial");
    check(
        "a.rs",
        source,
        &defined,
        [
            "MAX Other Port Renamed Turn Up map pub send shout take",
            "Bits HERE Inner MAX Port Short Turn Way dial far hang_up local shout",
        ],
    );
}

#[test]
fn python() {
    let source = "
from base import Model, helper
LIMIT: int = 3
limit = LIMIT
class User(Model):
    role = 1
    @cached
    def name(self) -> Text:
        def local(): pass
        return self.store.load(limit)
async def main():
    x = User(); helper(x)
@decorated
def last(*, a=LIMIT): pass
";
    let defined = "
3 variable LIMIT
4 variable limit
5 class User
8 method name
11 function main
14 function last";
    check(
        "a.py",
        source,
        defined,
        ["LIMIT Model Text User helper load", "LIMIT User last limit local main name"],
    );
}

#[test]
fn typescript() {
    let source = "
import { useStore, type Shape } from './x';
export const limit = 3;
export const View = (p: Shape) => { const inner = 1; function local() {} return useStore(limit); };
export default function main(): void {}
export abstract class Store<T> extends Base implements Shape { abstract size(): number; async load() { this.db.query(x); } }
interface Row { id: string }
type Id = string; enum Way { Up }
declare function outside(a: Id): void;
const { a, b } = new Store();
describe('x', () => { const hidden = 1; });
";
    let defined = "
3 variable limit
4 function View
5 function main
6 class Store
6 method size
6 method load
7 interface Row
8 type Id
8 enum Way
9 function outside";
    check(
        "a.ts",
        source,
        defined,
        [
            "Base Id Shape Store Up describe load query useStore",
            "Id Row Shape Store View Way hidden inner limit local main outside size",
        ],
    );
    let jsx = "export function App() { return <Panel size={1}>{render(x)}</Panel>; }";
    check("a.tsx", jsx, "1 function App", ["Panel render", "App"]);
}

#[test]
fn javascript() {
    let source = "
const fs = require('fs');
function* walk() {}
class Tree extends Node { #secret() {} static make() { return new Tree(); } }
exports.open = async function (path) { return fs.readFile(path); };
module.exports.close = () => helper();
(function () { function inIife() {} })();
const View = () => <Panel/>;
";
    let defined = "
2 variable fs
3 function walk
4 class Tree
4 method #secret
4 method make
5 function open
6 function close
7 function inIife
8 function View";
    check(
        "a.mjs",
        source,
        defined,
        ["Node Panel Tree helper make readFile require", "Tree View fs inIife secret walk"],
    );
}

#[test]
fn go() {
    let source = "
package x
const Max, Min = 3, 1
var (
\tErr = errors.New(\"x\")
)
type Store struct { Name string }
type Alias = Store
type Reader interface { Read() int }
func (s *Store) Load(n int) (*Row, error) { var local = 1; return helper(s.Name, pkg.Limit) }
func Map[T any](in []T) {}
";
    let defined = "
3 const Max
5 variable Err
7 type Store
8 type Alias
9 type Reader
10 method Load
11 function Map";
    check(
        "a.go",
        source,
        defined,
        ["Err Limit Min Name New Row Store helper", "Alias Load Map Max Read Reader Store local"],
    );
}

#[test]
fn java() {
    let source = "
package x;
import a.Base;
@Marked
public class Store<T> extends Base implements Shape {
    private int field = Limits.MAX;
    Store() {}
    <R> List<R> load(Row row) { class Local {} return row.items(field); }
    enum Way { UP } record Point(int x) {} @interface Marked {}
}
interface Shape { int SIDES = 3; void draw(); }
";
    let defined = "
5 class Store
8 method load
9 enum Way
9 record Point
9 annotation Marked
11 interface Shape
11 const SIDES
11 method draw";
    check(
        "A.java",
        source,
        defined,
        [
            "Base Limits List MAX Marked Row SIDES Shape UP draw items",
            "Local Marked Point Shape Store Way load",
        ],
    );
}

#[test]
fn c() {
    let source = "
#include <x.h>
#define LIMIT 3
#define MAX(a, b) ((a) > (b))
typedef struct node { struct other *next; } Node, *NodeRef;
enum way { UP };
union bits { int a; };
static int table[LIMIT] = {0};
extern int prototype(int);
static Node **make(int (*f)(int)) { struct local { int a; }; int x = 1; return helper(MAX(x, UP)); }
int (*pick(void))(int) { return 0; }
";
    let defined = "
3 macro LIMIT
4 macro MAX
5 type Node
5 struct node
6 enum way
7 union bits
8 variable table
10 function make
11 function pick";
    check(
        "a.c",
        source,
        defined,
        [
            "LIMIT MAX Node UP helper other prototype",
            "LIMIT MAX NodeRef bits local make next node pick way",
        ],
    );
}

#[test]
fn cpp() {
    let source = "
namespace app {
template <typename T> class Store : public Base { public: T &get() { return item; } int size(); };
using Rows = std::vector<Row>;
template <typename T> concept Small = true;
int Store::size() { return util::measure<int>(this->rows.count()); }
Store &operator+(Store &a, int b) { return a; }
}
";
    let defined = "
3 class Store
3 method get
4 type Rows
5 concept Small
6 function size
7 function operator+";
    check("a.cpp", source, defined, ["Base Row Store count get size", "Rows Small Store size"]);
    check("a.h", source, defined, ["Base Row Store count get size", "Rows Small Store size"]);
}

#[test]
fn what_is_broken_still_gives_what_can_be_read() {
    check(
        "a.rs",
        "fn one() {\n}}} %% \nstruct Two;",
        "1 function one\n3 struct Two",
        ["", "Two one"],
    );
    check(
        "a.py",
        "def one(:\n  pass\nclass Two:\n  def",
        "1 function one\n3 class Two",
        ["", "Two one"],
    );
}
