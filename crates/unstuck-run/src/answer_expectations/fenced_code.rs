//! Fenced code blocks with backticks or tildes.

/// A code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeBlock<'t> {
    /// The first word after the opening fence, such as `json`.
    pub(super) language: &'t str,
    /// The contents.
    pub(super) body: &'t str,
}

/// A text split into code blocks and other lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FencedText<'t> {
    /// The code blocks; an unclosed block extends to the end.
    pub(super) blocks: Vec<CodeBlock<'t>>,
    /// The lines outside of the code blocks.
    pub(super) outside: Vec<&'t str>,
}

impl<'t> FencedText<'t> {
    pub(super) fn parse(text: &'t str) -> Self {
        let mut found = Self::default();
        let mut open: Option<OpenFence<'t>> = None;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let next = at + line.len();
            match &open {
                Some(block) if block.is_closed_by(line) => {
                    found.close(text, block, at);
                    open = None;
                }
                Some(_) => {}
                None => match OpenFence::parse(line, next) {
                    Some(block) => open = Some(block),
                    None => found.outside.push(line.trim_end_matches(['\n', '\r'])),
                },
            }
            at = next;
        }
        if let Some(block) = open {
            found.close(text, &block, text.len());
        }
        found
    }

    fn close(&mut self, text: &'t str, open: &OpenFence<'t>, end: usize) {
        let body = &text[open.start..end];
        let language = open.language;
        self.blocks.push(CodeBlock { language, body });
    }
}

/// An opening fence.
struct OpenFence<'t> {
    mark: char,
    len: usize,
    language: &'t str,
    start: usize,
}

impl<'t> OpenFence<'t> {
    fn parse(line: &'t str, start: usize) -> Option<Self> {
        let (mark, len, rest) = parse_fence(line)?;
        // Backticks after the fence make it inline code.
        let is_inline = mark == '`' && rest.contains('`');
        let language = rest.split_whitespace().next().unwrap_or_default();
        (!is_inline).then_some(Self {
            mark,
            len,
            language,
            start,
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        parse_fence(line).is_some_and(|(mark, len, rest)| {
            mark == self.mark && len >= self.len && rest.trim().is_empty()
        })
    }
}

/// Returns the fence character, its count, and the rest of the line.
fn parse_fence(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim_start_matches(' ');
    let mark = line.chars().next().filter(|mark| "`~".contains(*mark))?;
    let rest = line.trim_start_matches(mark);
    let len = line.len() - rest.len();
    (len >= 3).then_some((mark, len, rest))
}

/// Returns the contents of a text that is a single Markdown code block, else the text.
pub(super) fn strip_single_fence(text: &str) -> &str {
    let fenced = FencedText::parse(text.trim());
    match fenced.blocks.as_slice() {
        [block] if fenced.outside.is_empty() && ["markdown", "md"].contains(&block.language) => {
            block.body
        }
        _ => text,
    }
}
