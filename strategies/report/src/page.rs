//! The page: a template, its style and its scripts in one file, and the deflated document in base64.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");

/// The scripts, in the order in which they run; each begins with a comment on its purpose.
const SCRIPTS: [&str; 12] = [
    include_str!("page/base.js"),
    include_str!("page/picture.js"),
    include_str!("page/table.js"),
    include_str!("page/summary.js"),
    include_str!("page/loads.js"),
    include_str!("page/heat.js"),
    include_str!("page/machine.js"),
    include_str!("page/matrix.js"),
    include_str!("page/between.js"),
    include_str!("page/moves.js"),
    include_str!("page/distances.js"),
    include_str!("page/main.js"),
];

/// The page of a document.
pub(crate) fn html(title: &str, json: &str) -> String {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    // Writing to a vector does not fail; a document that was cut would be found by the page.
    let deflated = encoder.write_all(json.as_bytes()).and_then(|()| encoder.finish()).unwrap_or_default();
    let values = [
        ("{{title}}", escaped(title)),
        ("{{style}}", STYLE.to_string()),
        ("{{script}}", SCRIPTS.concat()),
        ("{{data}}", base64(&deflated)),
    ];
    let mut page = String::with_capacity(TEMPLATE.len() + deflated.len() * 3 / 2 + 100_000);
    let mut rest = TEMPLATE;
    // One pass, so that a title with the name of a place is no place.
    while let Some(at) = rest.find("{{") {
        page.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = values.iter().find(|(name, _)| rest.starts_with(name));
        let (name, value) = found.map_or(("{{", "{{"), |(name, value)| (*name, value.as_str()));
        page.push_str(value);
        rest = &rest[name.len()..];
    }
    page.push_str(rest);
    page
}

/// Text in HTML.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '"' | '\'' => _ = write!(safe, "&#{};", c as u32),
            c => safe.push(c),
        }
    }
    safe
}

/// Bytes in base64, as RFC 4648 has it.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().zip([16, 8, 0]).fold(0, |bits, (&byte, by)| bits | u32::from(byte) << by);
        for (digit, by) in [18, 12, 6, 0].into_iter().enumerate() {
            let is_there = digit <= three.len();
            text.push(if is_there { DIGITS[(bits >> by & 63) as usize] as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn the_page_is_complete_and_names_no_address() {
        let page = html("a <b> {{data}}", "{}");
        assert!(page.contains("<title>a &#60;b&#62; {{data}}"), "the title is text");
        assert!(!page.contains("{{style}}") && !page.contains("{{script}}"));
        for address in ["http:", "https:", "//cdn", "url(h", "@import", "src=", "import(", "fetch("] {
            assert!(!page.contains(address), "the page contains {address}");
        }
        assert_eq!(page, html("a <b> {{data}}", "{}"));
        // A script that ends its element would end the page's program.
        assert!(SCRIPTS.iter().all(|script| script.starts_with("// ") && !script.contains("</script")));
    }
}
