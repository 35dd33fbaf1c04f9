//! Did-you-mean suggestions.

/// Returns the value whose word is nearest to `wanted`, if it is near enough to be a typo.
pub fn nearest<'a, T>(wanted: &str, known: impl IntoIterator<Item = (&'a str, T)>) -> Option<T> {
    let letters = wanted.chars().count();
    // A word that shares no letter is a different word.
    let limit = (letters / 3).max(1).min(letters.saturating_sub(1));
    known
        .into_iter()
        .map(|(word, value)| (edit_distance(wanted, word), value))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, value)| value)
}

/// Returns the edit distance of two words (insert, delete, replace, transpose), ignoring case.
pub(crate) fn edit_distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().flat_map(char::to_lowercase).collect();
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (rows[i][j + 1] + 1)
                .min(row[j] + 1)
                .min(rows[i][j] + usize::from(x != y));
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_are_near_and_other_words_are_not() {
        let known = [("config.yaml", 1), ("main.rs", 2)];
        assert_eq!(nearest("confg.yaml", known), Some(1));
        assert_eq!(nearest("Config.yml", known), Some(1));
        assert_eq!(nearest("README.md", known), None);
        assert_eq!(nearest("b", [("a", 1)]), None);
        assert_eq!(edit_distance("tset", "test"), 1);
    }
}
