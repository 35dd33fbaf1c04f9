//! Base64 encodings of secrets.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const FOR_ADDRESSES: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns the stable part of a text's encoding inside a longer one, for each alignment, in both alphabets.
pub(super) fn encodings_inside(text: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(text.as_bytes());
        for alphabet in [STANDARD, FOR_ADDRESSES] {
            let digits = encode_stable(&bytes, alphabet);
            let first = (before * 8).div_ceil(6);
            forms.push(digits.get(first..).unwrap_or_default().to_owned());
        }
    }
    forms
}

/// Returns how the encoding of a text with this prefix begins.
pub(super) fn encoded_prefix(text: &str) -> String {
    encode_stable(text.as_bytes(), STANDARD)
}

/// Encodes the known digits, without one that depends on what follows.
fn encode_stable(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut digits = String::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        count += 8;
        while count >= 6 {
            count -= 6;
            digits.push(char::from(alphabet[(bits >> count & 63) as usize]));
        }
        bits &= (1 << count) - 1;
    }
    digits
}

/// Returns true if a byte is a digit of either alphabet.
pub(super) fn is_digit(byte: u8) -> bool {
    digit(byte).is_some()
}

/// Decodes base64; none if it is invalid.
pub(super) fn decode(base64: &[u8]) -> Option<Vec<u8>> {
    let digits = base64.iter().filter(|byte| **byte != b'=');
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for one in digits {
        bits = bits << 6 | u32::from(digit(*one)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(out)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_text_is_found_at_any_alignment() {
        let forms = encodings_inside("hunter2-hunter2");
        for around in ["", "a", "ab", "abc", "user:"] {
            let whole = format!("{around}hunter2-hunter2{around}");
            let base64 = encode_stable(whole.as_bytes(), STANDARD);
            let is_there = |form: &String| base64.contains(form.as_str());
            assert!(forms.iter().any(is_there), "{around}");
            assert_eq!(
                decode(base64.as_bytes()).map(|text| text.len() + 1 >= whole.len()),
                Some(true)
            );
        }
        assert_eq!(encoded_prefix("sk-ant-"), "c2stYW50L");
    }
}
