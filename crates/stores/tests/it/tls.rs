//! Tests of encrypted connections to PostgreSQL.

use std::path::Path;

use quintet_kernel::port::Blobs as _;
use quintet_stores::postgres::probe;
use quintet_testkit::postgres::TlsServer;

use crate::blobs::{HELLO, check};
use crate::stores_under_test::node;

fn url(server: &TlsServer, host: &str, mode: &str, root: &Path) -> String {
    server.url(host, &format!("sslmode={mode}&sslrootcert={}", root.display()))
}

#[tokio::test]
async fn a_server_is_trusted_only_by_its_certificate() {
    let server = TlsServer::start();
    let root = server.root();
    for mode in ["require", "verify-full"] {
        let store = node(&url(&server, "localhost", mode, &root), mode);
        store.put(b"hello".to_vec()).await.unwrap();
        check(&store, HELLO, "hello").await;
        let connections = "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE application_name = 'quintet'";
        assert_eq!(server.run(connections), "t", "{mode}: every connection is encrypted");

        let other = url(&server, "localhost", mode, &server.other_root());
        let refused = probe(&other).await.unwrap_err().to_string();
        assert!(refused.contains("UnknownIssuer"), "{mode}: {refused}");
        let elsewhere = url(&server, "127.0.0.1", mode, &root);
        let refused = probe(&elsewhere).await.unwrap_err().to_string();
        assert!(refused.contains("not valid for name \"127.0.0.1\""), "{mode}: {refused}");
        let system = server.url("localhost", &format!("sslmode={mode}"));
        let refused = probe(&system).await.unwrap_err().to_string();
        assert!(refused.contains("UnknownIssuer"), "{mode}: {refused}");
    }
    // There is no fallback to unencrypted connections for servers without TLS.
    let plain = server.url("localhost", "sslmode=disable");
    probe(&plain).await.unwrap();
    server.speak_tls("off");
    let refused = probe(&url(&server, "localhost", "require", &root)).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("does not support TLS"), "{refused}");
}
