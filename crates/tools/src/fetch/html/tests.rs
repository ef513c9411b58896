//! Pages, as a model reads them.

use super::*;

fn read(html: &str) -> Readable {
    let base = Url::parse("https://example.org/a/b").expect("it is a URL");
    readable(html, &base, &CancelFlag::default())
}

#[track_caller]
fn check(html: &str, text: &str) {
    assert_eq!(read(html).text, text, "{html}");
}

#[test]
fn a_page_reads_like_markdown() {
    let page = read(
        "<!doctype html><html><head><title>\n A &amp; B </title><style>b{}</style>\
         <script>if (a < b) alert('</p>')</script></head><body><h1>Top <b>bold</b></h1>\
         <p>one\n  two&nbsp;three</p><ul><li>x<li><p>y</p></ul><pre>  a\n\tb</pre>\
         <table><tr><th>k<th>v<tr><td>1<td> 2 </table><hr>end<br>line<img alt='pic'></body>",
    );
    assert_eq!(page.title, "A & B");
    let expected = "# Top bold\n\none two three\n\n- x\n- y\n\n```\n  a\n\tb\n```\n\nk | v\n1 | 2\n\n\
                    ---\n\nend\nline[pic]";
    assert_eq!(page.text, expected);
}

#[test]
fn links_are_whole_and_only_to_the_web() {
    check("<a href='c?d=1'>x  y</a>.", "[x y](https://example.org/a/c?d=1).");
    check("see <a href=//other.org> it </a> now", "see [it](https://other.org/) now");
    check("<a href='#top'>up</a> <a href='javascript:x()'>run</a> <a>no</a>", "up run no");
    check("<a href=x></a><a href=y><img></a>z", "z");
    check("<a href=x>a<a href=y>b", "[a](https://example.org/a/x)b");
}

#[test]
fn what_is_not_shown_is_left_out() {
    check("a<script>b</script>c<style>d</style>e<template>f</template>g", "aceg");
    check("a<!-- b -->c<svg><text>d</text></svg>e<svg/>f<iframe>g</iframe>h", "acefh");
    check("a<noscript>b</noscript>c", "abc");
    check("a<script>never closed <p>b", "a");
}

#[test]
fn ugly_pages_do_no_harm() {
    check("", "");
    check("<", "<");
    check("<p", "");
    check("a < b & c &lt; &#x41;&#0;&#99999999;", "a < b & c < A\u{fffd}\u{fffd}");
    check("</p></a></td></pre></title>x", "x");
    check("<pre><pre>x</pre></pre>y", "```\nx\n```\n\ny");
    check("\u{0}\u{feff}é<p>\u{202e}", "\u{feff}é\n\n\u{202e}");
    for piece in ["<div>", "<b>", "<table><tr><td>", "<ul><li>", "<a href=x>y", "<pre>", "<svg>"] {
        let text = read(&piece.repeat(200_000)).text;
        assert!(text.len() < 20_000_000, "{piece}: {}", text.len());
    }
}

#[test]
fn it_stops_when_nobody_wants_it_any_more() {
    let base = Url::parse("https://example.org/").expect("it is a URL");
    let flag = CancelFlag::default();
    flag.cancel();
    assert_eq!(readable("text", &base, &flag).text, "");
}
