//! Who says where to look, and who is believed.

use std::fs;

use super::Places;

fn places(environment: &[(&str, &str)]) -> Places {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Places::of(&environment.iter().map(owned).collect::<Vec<_>>())
}

#[test]
fn the_index_is_found_the_way_pip_finds_it() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_str().unwrap();
    let conf = home.path().join(".config/pip/pip.conf");
    fs::create_dir_all(conf.parent().unwrap()).unwrap();
    fs::write(
        &conf,
        "[install]\nindex-url = http://no/\n[global]\ncert = x\nindex_url: http://mine/simple\n",
    )
    .unwrap();
    assert_eq!(places(&[("HOME", path)]).index(), "http://mine/simple");
    let other = home.path().join("other.conf");
    fs::write(&other, "[global]\nindex-url = http://other/simple\n").unwrap();
    let named = [("HOME", path), ("PIP_CONFIG_FILE", other.to_str().unwrap())];
    assert_eq!(places(&named).index(), "http://other/simple");
    let set = [("HOME", path), ("PIP_INDEX_URL", "http://set/simple")];
    assert_eq!(places(&set).index(), "http://set/simple");
}

#[test]
fn the_hub_may_have_a_mirror() {
    let file = "https://huggingface.co/a/b";
    assert_eq!(places(&[]).hub(file), file);
    assert_eq!(places(&[("HF_ENDPOINT", "http://near/")]).hub(file), "http://near/a/b");
    assert_eq!(places(&[("HF_ENDPOINT", "http://near")]).hub("http://x/y"), "http://x/y");
}
