//! Finds a package's wheel in an index: a page of links for each package (PEP 503).

use reqwest::Url;

use super::web::Web;
use crate::Package;

const ACCEPT: &str = "application/vnd.pypi.simple.v1+html, text/html;q=0.9";

/// The address of the package's wheel.
pub(super) async fn find(web: &Web, index: &str, package: &Package) -> Result<String, String> {
    let page = format!("{}/{}/", index.trim_end_matches('/'), package.package);
    let html = web.page(&page, ACCEPT).await?;
    let base = Url::parse(&page).map_err(|_| "the index has no proper address".to_owned())?;
    let name = format!("{}-{}-", package.package.replace('-', "_"), package.version);
    let wheel =
        |link: &&str| file_name(link).starts_with(&name) && file_name(link).ends_with(".whl");
    let link = links(&html).find(wheel).ok_or("there is no such package")?;
    let url = base.join(&link.replace("&amp;", "&")).map_err(|error| error.to_string())?;
    Ok(url.into())
}

/// The links of the page.
fn links(html: &str) -> impl Iterator<Item = &str> {
    html.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|letter| "\"'".contains(*letter))?;
        rest[1..].split(quote).next()
    })
}

fn file_name(link: &str) -> &str {
    let path = link.split(['#', '?']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}
