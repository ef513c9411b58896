//! Checks that an SVG contains only a picture: no scripts, and nothing that is loaded from elsewhere.
//!
//! Browsers show these pictures, and SVG can run scripts and load files from other servers. The check is
//! a list of what is allowed, because a list of what is dangerous would never be complete.

use roxmltree::{Attribute, Document, Node};

const SVG: &str = "http://www.w3.org/2000/svg";
/// Larger pictures are not useful.
const MOST_BYTES: usize = 8 * 1024 * 1024;

const ELEMENTS: [&str; 25] = [
    "a",
    "circle",
    "clipPath",
    "defs",
    "desc",
    "ellipse",
    "feDropShadow",
    "filter",
    "g",
    "line",
    "linearGradient",
    "marker",
    "path",
    "pattern",
    "polygon",
    "polyline",
    "radialGradient",
    "rect",
    "stop",
    "style",
    "svg",
    "symbol",
    "text",
    "title",
    "tspan",
];

/// Texts that refer to something outside of the picture, or could hide such a reference.
const WAYS_OUT: [&str; 10] = [
    "//",
    "\\",
    "@import",
    "data:",
    "expression(",
    "image(",
    "image-set(",
    "javascript:",
    "src(",
    "vbscript:",
];

/// The picture without the text before it; an error says what is wrong with it.
pub(super) fn check(text: &str) -> Result<&str, String> {
    // The document type that `dot` writes first refers to an external file.
    let text = &text[text.find("<svg").ok_or("nothing was drawn")?..];
    check_size(text)?;
    let document = Document::parse(text);
    let document = document.map_err(|error| format!("the picture is damaged: {error}"))?;
    document.root().descendants().try_for_each(check_node)?;
    Ok(text)
}

/// Fails if the picture is too large.
pub(super) fn check_size(text: &str) -> Result<(), String> {
    if text.len() > MOST_BYTES {
        return Err(format!("the picture is too large: {} bytes", text.len()));
    }
    Ok(())
}

fn check_node(node: Node<'_, '_>) -> Result<(), String> {
    if node.is_pi() {
        return Err("the picture has a processing instruction".to_owned());
    }
    if !node.is_element() {
        return Ok(());
    }
    let name = node.tag_name();
    if name.namespace() != Some(SVG) || !ELEMENTS.contains(&name.name()) {
        return Err(format!("the picture has a <{}>, which is not shown", name.name()));
    }
    if name.name() == "style" {
        node.descendants().filter_map(|node| node.text()).try_for_each(check_value)?;
    }
    node.attributes().try_for_each(|attribute| check_attribute(&attribute))
}

fn check_attribute(attribute: &Attribute<'_, '_>) -> Result<(), String> {
    let (name, value) = (attribute.name(), attribute.value());
    if name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("on")) {
        return Err(format!("the picture has a script ({name})"));
    }
    match name {
        "href" | "src" if value.starts_with('#') => Ok(()),
        "href" | "src" => {
            Err(format!("the picture leads to {value:?}; leave links and images out"))
        }
        // These are words for people, and are never loaded.
        "title" | "id" | "class" | "aria-label" | "aria-roledescription" => Ok(()),
        _ => check_value(value),
    }
}

/// Looks through a value in which a browser may look for something to load.
fn check_value(value: &str) -> Result<(), String> {
    let value = value.to_ascii_lowercase();
    let out = WAYS_OUT.iter().find(|way| value.contains(**way));
    let mut urls = value.split("url(").skip(1);
    let local = |url: &str| url.trim_start_matches([' ', '"', '\'']).starts_with('#');
    if out.is_some() || !urls.all(local) {
        let shown: String = value.chars().take(80).collect();
        return Err(format!("the picture leads out of itself: {shown:?}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(inside: &str) -> String {
        format!("<svg xmlns='{SVG}' xmlns:xlink='http://www.w3.org/1999/xlink'>{inside}</svg>")
    }

    #[test]
    fn a_plain_picture_is_kept_without_what_stands_before_it() {
        let plain = picture(
            "<style>.a{fill:url(#b);stroke:#333}</style><defs><marker id='b'/></defs>\
             <g class='a'><path d='M0 0' marker-end='url(#b)' style='fill: url(\"#b\")'/>\
             <text>javascript://x &lt;script&gt; \\</text><a xlink:href='#b'/></g><!-- x -->",
        );
        assert_eq!(check(&plain), Ok(plain.as_str()));
        let before =
            "<?xml version='1.0'?>\n<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"x\">\n";
        assert_eq!(check(&format!("{before}{plain}")), Ok(plain.as_str()));
    }

    #[test]
    fn scripts_and_ways_out_are_refused() {
        for inside in [
            "<script>x</script>",
            "<SCRIPT/>",
            "<foreignObject/>",
            "<image href='#a'/>",
            "<use href='#a'/>",
            "<animate attributeName='href' values='javascript:x'/>",
            "<set attributeName='onclick' to='x'/>",
            "<x:script xmlns:x='http://www.w3.org/1999/xhtml'/>",
            "<h:div xmlns:h='http://www.w3.org/1999/xhtml'/>",
            "<g onclick='x'/>",
            "<g ONLOAD='x'/>",
            "<a href='javascript:x'/>",
            "<a xlink:href='https://example.org'/>",
            "<a href=' #x'/>",
            "<rect fill='url(http://example.org/x)'/>",
            "<rect fill='URL( &quot;x.svg#y&quot;)'/>",
            "<rect fill='url(#a) url(b)'/>",
            "<rect style='fill:u\\72l(b)'/>",
            "<rect style='cursor:image-set(&quot;x.png&quot; 1x)'/>",
            "<style>@import 'x.css';</style>",
            "<style><![CDATA[a{background:url(x)}]]></style>",
            "<style>a{fill:red}<g/>b{background:url(x)}</style>",
            "<?xml-stylesheet href='x'?>",
        ] {
            assert!(check(&picture(inside)).is_err(), "{inside}");
        }
    }

    #[test]
    fn what_is_damaged_is_refused() {
        for text in ["", "<p/>", "<svg>", "<svg/>", "<svg xmlns='x'/>", "<svg\0/>", "<svgx/>"] {
            assert!(check(text).is_err(), "{text}");
        }
        assert!(check(&picture("&undefined;")).is_err());
        assert!(check(&picture("</svg><svg>")).is_err());
        assert!(check(&picture("\u{1}")).is_err());
        let deep = picture(&format!("{}{}", "<g>".repeat(100_000), "</g>".repeat(100_000)));
        // Whether it is too deep is the parser's business; it must only not break.
        let _ = check(&deep);
        let large = picture(&" ".repeat(MOST_BYTES));
        assert!(check(&large).is_err_and(|why| why.starts_with("the picture is too large")));
    }
}
