//! The command lines of servers.

use super::*;

/// The command line that a server with these variables gets, and its own folder.
async fn line(name: &str, folder: &ServerFolder, data: &Path) -> (Command, PathBuf) {
    let sandbox = Sandbox { mode: Mode::Prefer, ..Sandbox::default() };
    let launcher = ServerLauncher::new("/bin/false".into(), sandbox, data.to_owned());
    let env = BTreeMap::from([("LD_PRELOAD".to_owned(), "/x.so".to_owned())]);
    let (command, sandbox) = (["cat".to_owned()], ServerSandbox::default());
    let server = ServerCommand { name, command: &command, env: &env, sandbox: &sandbox, folder };
    let (command, confined) = launcher.confined(&server, "x").await.unwrap();
    std::fs::remove_dir_all(&confined.scratch).unwrap();
    (command, launcher.0.own_folder(&server))
}

#[tokio::test]
async fn the_variables_of_a_server_do_not_reach_its_supervisor() {
    let data = tempfile::tempdir().unwrap();
    let (command, own) = line("a", &ServerFolder::Home("/".into()), data.path()).await;
    let variables: Vec<_> = command.as_std().get_envs().collect();
    let value = |name: &str| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.and_then(|(_, value)| *value).map(|value| value.to_string_lossy().into_owned())
    };
    assert_eq!(value("LD_PRELOAD"), None);
    assert_eq!(value(sandbox::VARIABLES).unwrap(), "{\"LD_PRELOAD\":\"/x.so\"}");
    assert_eq!(value("HOME").unwrap(), own.display().to_string());
    assert_eq!(command.as_std().get_current_dir(), Some(own.as_path()));
}

#[tokio::test]
async fn every_server_has_a_folder_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (here, home) = (ServerFolder::Workspace(dir.path().into()), ServerFolder::Home("/".into()));
    let mut names = std::collections::BTreeSet::new();
    for (name, folder) in
        [("a", &home), ("a", &here), ("../a", &here), ("../a", &home), ("", &home)]
    {
        let (_, own) = line(name, folder, &data).await;
        assert_eq!(own.parent(), Some(data.join(FOLDERS).as_path()), "{name}");
        assert!(own.is_dir() && names.insert(own), "{name}");
    }
    assert!(names.contains(&data.join(FOLDERS).join("a")));
}
