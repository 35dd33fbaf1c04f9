//! Removes elements from XML, so that a changed version is irrelevant.

/// Returns the text without comments and without the elements whose paths, such as `project.version`, are unwanted.
///
/// None if it contains anything unsupported: the whole text is then relevant.
pub(super) fn without_elements(text: &str, is_unwanted: impl Fn(&str) -> bool) -> Option<String> {
    if text.contains("<![CDATA[") || text.contains("<!DOCTYPE") || text.contains("<!ENTITY") {
        return None;
    }
    let text = without_comments(text)?;
    let mut kept = String::new();
    let mut open: Vec<&str> = Vec::new();
    // Depth of the unwanted element around the current position.
    let mut unwanted: Option<usize> = None;
    let mut rest = text.as_str();
    while let Some(start) = rest.find('<') {
        if unwanted.is_none() {
            kept.push_str(&rest[..start]);
        }
        let end = end_of_tag(&rest[start..])? + start;
        let tag = &rest[start..=end];
        rest = &rest[end + 1..];
        match XmlTag::parse(tag)? {
            XmlTag::Other => {}
            XmlTag::Close(name) => {
                if open.pop()? != name {
                    return None;
                }
                if unwanted == Some(open.len()) {
                    unwanted = None;
                    continue;
                }
            }
            XmlTag::Empty(name) | XmlTag::Open(name) if unwanted.is_none() => {
                open.push(name);
                if is_unwanted(&open.join(".")) {
                    unwanted = Some(open.len() - 1);
                }
                if let XmlTag::Empty(_) = XmlTag::parse(tag)? {
                    open.pop();
                    if unwanted.take_if(|depth| *depth == open.len()).is_some() {
                        continue;
                    }
                }
            }
            XmlTag::Open(name) => open.push(name),
            XmlTag::Empty(_) => {}
        }
        if unwanted.is_none() {
            kept.push_str(tag);
        }
    }
    kept.push_str(rest);
    open.is_empty().then(|| without_blank_lines(&kept))
}

enum XmlTag<'t> {
    Open(&'t str),
    Empty(&'t str),
    Close(&'t str),
    /// The XML declaration.
    Other,
}

impl<'t> XmlTag<'t> {
    fn parse(tag: &'t str) -> Option<Self> {
        let inner = tag.strip_prefix('<')?.strip_suffix('>')?;
        if inner.starts_with('?') {
            return inner.ends_with('?').then_some(Self::Other);
        }
        if let Some(name) = inner.strip_prefix('/') {
            return Some(Self::Close(name.trim_end()));
        }
        let name = inner.split([' ', '\t', '\n', '/']).next()?;
        let is_name = |c: char| c.is_alphanumeric() || "._:-".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        if inner.ends_with('/') {
            Some(Self::Empty(name))
        } else {
            Some(Self::Open(name))
        }
    }
}

/// Returns the end of a tag; a bracket in quotes does not end it.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

fn without_comments(text: &str) -> Option<String> {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("<!--") {
        kept.push_str(&rest[..start]);
        let inner = &rest[start + 4..];
        rest = &inner[inner.find("-->")? + 3..];
    }
    kept.push_str(rest);
    Some(kept)
}

fn without_blank_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim_end);
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        without_elements(text, |path| {
            ["project.version", "project.dependencies"].contains(&path)
        })
    }

    #[test]
    fn only_elements_at_the_exact_path_are_removed() {
        let text = "<?xml version=\"1.0\"?>\n<project a=\"x>y\">\n<version>1</version>\n<dependencies><dependency/></dependencies>\n\
            <build><plugins><plugin><version>2</version><dependencies/></plugin></plugins></build>\n</project>";
        let kept = read(text).unwrap();
        assert!(!kept.contains("<version>1"), "{kept}");
        assert!(
            kept.contains("<plugin><version>2</version><dependencies/></plugin>"),
            "{kept}"
        );
        assert_eq!(read(&text.replace(">1<", ">7<")), Some(kept.clone()));
        assert_ne!(read(&text.replace(">2<", ">7<")), Some(kept));
    }

    #[test]
    fn unsupported_xml_makes_the_whole_file_relevant() {
        for text in [
            "<project><![CDATA[</project>]]></project>",
            "<project><dependencies><!-- </dependencies> -></project>",
            "<project><a></b></project>",
            "<project>",
            "<project a='>",
            "<!DOCTYPE x [<!ENTITY e \"y\">]><project/>",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let hidden =
            "<project><dependencies><!-- </dependencies> --><x/></dependencies><build/></project>";
        assert_eq!(read(hidden).unwrap(), "<project><build/></project>\n");
    }
}
