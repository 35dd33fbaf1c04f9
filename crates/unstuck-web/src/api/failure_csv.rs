//! CSV export of failures (RFC 4180).

use crate::model::FailureListItem;

/// Header line with the column names.
pub(super) const CSV_HEADER: &str =
    "at,run,session,attempt,call,project,model,kind,fingerprint,message\r\n";

/// Formats a failure as a CSV line.
pub(super) fn csv_row(failure: &FailureListItem) -> String {
    let none = String::new();
    let cells = [
        &failure.at.to_string(),
        &failure.run,
        &failure.session,
        &failure.attempt.to_string(),
        failure.call.as_ref().unwrap_or(&none),
        &failure.project,
        failure.model.as_ref().unwrap_or(&none),
        &failure.kind.to_string(),
        &failure.fingerprint,
        &failure.message,
    ];
    let cells: Vec<_> = cells.into_iter().map(|text| csv_cell(text)).collect();
    format!("{}\r\n", cells.join(","))
}

/// Escapes a cell. Spreadsheets would execute text that begins like a formula.
fn csv_cell(text: &str) -> String {
    let obeyed = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guard = if obeyed { "'" } else { "" };
    if obeyed || text.contains(['"', ',', '\n', '\r']) {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_cell_is_escaped_and_never_a_formula() {
        assert_eq!(csv_cell("plain"), "plain");
        assert_eq!(csv_cell("a \"b\", c\nd"), "\"a \"\"b\"\", c\nd\"");
        assert_eq!(csv_cell("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
        assert_eq!(csv_cell(""), "");
    }
}
