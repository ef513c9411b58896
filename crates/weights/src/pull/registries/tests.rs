//! Tests of which configuration sets the address of a registry.

use std::fs;

use super::Registries;
use crate::Registry;

fn registries(environment: &[(&str, &str)]) -> Registries {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Registries::new(&environment.iter().map(owned).collect::<Vec<_>>())
}

#[test]
fn the_index_is_found_as_pip_finds_it() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_str().unwrap();
    let conf = home.path().join(".config/pip/pip.conf");
    fs::create_dir_all(conf.parent().unwrap()).unwrap();
    fs::write(
        &conf,
        "[install]\nindex-url = http://no/\n[global]\ncert = x\nindex_url: http://mine/simple\n",
    )
    .unwrap();
    assert_eq!(registries(&[("HOME", path)]).of(Registry::PyPi), "http://mine/simple");
    let other = home.path().join("other.conf");
    fs::write(&other, "[global]\nindex-url = http://other/simple\n").unwrap();
    let named = [("HOME", path), ("PIP_CONFIG_FILE", other.to_str().unwrap())];
    assert_eq!(registries(&named).of(Registry::PyPi), "http://other/simple");
    let set = [("HOME", path), ("PIP_INDEX_URL", "http://set/simple")];
    assert_eq!(registries(&set).of(Registry::PyPi), "http://set/simple");
}

#[test]
fn the_hub_may_have_a_mirror() {
    let file = "https://huggingface.co/a/b";
    assert_eq!(registries(&[]).hub(file), file);
    assert_eq!(registries(&[("HF_ENDPOINT", "http://near/")]).hub(file), "http://near/a/b");
    assert_eq!(registries(&[("HF_ENDPOINT", "http://near")]).hub("http://x/y"), "http://x/y");
}

#[test]
fn the_npm_registry_comes_from_the_environment_or_npmrc() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_str().unwrap();
    assert_eq!(registries(&[("HOME", path)]).of(Registry::Npm), "https://registry.npmjs.org");
    fs::write(home.path().join(".npmrc"), "strict-ssl=false\nregistry = http://mine/\n").unwrap();
    assert_eq!(registries(&[("HOME", path)]).of(Registry::Npm), "http://mine/");
    let set = [("HOME", path), ("NPM_CONFIG_REGISTRY", "http://set/")];
    assert_eq!(registries(&set).of(Registry::Npm), "http://set/");
}
