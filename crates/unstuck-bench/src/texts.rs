//! Generated texts to diagnose: the same seed gives the same texts.

use unstuck_core::Failure;
use unstuck_core::decision::SeededRng;

/// Size of a typical standard error output.
pub(crate) const USUAL_SIZE: usize = 2048;

/// Error lines as tools and APIs print them.
const ERRORS: [&str; 20] = [
    "Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"This request would exceed your organization's rate limit\"}}",
    "openai.RateLimitError: Error code: 429 - Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29500. Please try again in 1.2s",
    "API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
    "Error: You exceeded your current quota, please check your plan and billing details",
    "Error: getaddrinfo ENOTFOUND api.example.com",
    "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Connection refused",
    "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='api.example.com', port=443): Read timed out. (read timeout=30)",
    "bash: line 1: pnpm: command not found",
    "cat: src/settings/main.toml: No such file or directory",
    "mkdir: cannot create directory '/opt/data': Permission denied",
    "OSError: [Errno 28] No space left on device",
    "ModuleNotFoundError: No module named 'yaml_tools'",
    "npm ERR! code ERESOLVE could not resolve dependency tree",
    "error[E0308]: mismatched types",
    "  File \"app/report.py\", line 12\n    def total(items:\nSyntaxError: '(' was never closed",
    "FAILED tests/test_cart.py::test_total - AssertionError: assert 41 == 42",
    "Error: listen EADDRINUSE: address already in use :::3000",
    "prompt is too long: 214331 tokens > 200000 maximum",
    "Invalid API key · Please run /login",
    "error: the lock file needs to be updated but --locked was passed to prevent this",
];

/// Lines of programs without errors; `#` stands for a number, `@` for a word.
const ORDINARY: [&str; 16] = [
    "2026-03-04T10:#:#Z INFO server: listening on 127.0.0.1:80#",
    "[#/200] Building CXX object src/@/@.cc.o",
    "   Compiling @-@ v0.#.#",
    "GET /api/@/# 200 in # ms",
    "Step #/40 : COPY @ /app/@",
    "info: loaded # entries of @ from the cache",
    "test @::@ ... ok",
    "Downloading @-#.#.tar.gz (# kB)",
    "added # packages in # s",
    "sent # bytes to @ in # chunks",
    "DEBUG worker-#: picked job @ from the queue",
    "✓ renders the @ page (# ms)",
    "remote: Counting objects: # done.",
    "warning: # entries of @ were skipped",
    "checking whether @ is up to date... yes",
    "Reading package lists... #%",
];

/// Words common in logs, so that random texts partially match patterns.
const COMMON: [&str; 16] = [
    "error", "failed", "the", "is", "not", "file", "request", "limit", "found", "to", "server",
    "code", "line", "token", "after", "model",
];

/// A generator of texts from a seed.
pub(crate) struct TextGenerator(SeededRng);

impl TextGenerator {
    pub(crate) const fn from_seed(seed: u64) -> Self {
        Self(SeededRng::seeded(seed))
    }

    /// Returns log texts: of ten, seven with one error line and three without.
    pub(crate) fn logs(&mut self, count: usize, size: usize) -> Vec<Failure> {
        (0..count)
            .map(|number| {
                let error = (number % 10 < 7).then(|| ERRORS[number * 7 % ERRORS.len()]);
                failed(self.log(error, size))
            })
            .collect()
    }

    /// Returns normal lines, with an error line after three quarters of them.
    pub(crate) fn log(&mut self, error: Option<&str>, size: usize) -> String {
        let mut text = String::with_capacity(size + 200);
        let mut error = error;
        while text.len() < size {
            if text.len() * 4 >= size * 3
                && let Some(line) = error.take()
            {
                text.push_str(line);
            } else {
                let line = self.pick(&ORDINARY);
                self.fill_template(line, &mut text);
            }
            text.push('\n');
        }
        text
    }

    /// Returns only error lines.
    pub(crate) fn errors(&mut self, size: usize) -> String {
        let mut text = String::with_capacity(size + 200);
        while text.len() < size {
            text.push_str(self.pick(&ERRORS));
            text.push('\n');
        }
        text
    }

    /// Returns lines of random words, a fifth of them common ones.
    pub(crate) fn words(&mut self, size: usize) -> String {
        let mut text = String::with_capacity(size + 20);
        while text.len() < size {
            if self.below(5) == 0 {
                text.push_str(self.pick(&COMMON));
            } else {
                self.push_word(&mut text);
            }
            text.push(if self.below(9) == 0 { '\n' } else { ' ' });
        }
        text
    }

    fn fill_template(&mut self, line: &str, text: &mut String) {
        for c in line.chars() {
            match c {
                '#' => text.push_str(&(10 + self.below(90)).to_string()),
                '@' => self.push_word(text),
                plain => text.push(plain),
            }
        }
    }

    fn push_word(&mut self, text: &mut String) {
        for _ in 0..2 + self.below(8) {
            let at = self.below(26);
            text.extend(('a'..='z').nth(at));
        }
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.next_draw().0 >> 33).unwrap_or(0) % end
    }
}

/// Returns a tool call that exited with 1 and printed this text.
pub(crate) fn failed(text: String) -> Failure {
    Failure::tool("bash").with_exit_code(1).with_stderr(text)
}

/// Returns a single error line.
pub(crate) fn one_line() -> &'static str {
    ERRORS[5]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_texts_of_the_requested_size() {
        let texts = || TextGenerator::from_seed(1).logs(20, USUAL_SIZE);
        assert_eq!(texts(), texts());
        let words = TextGenerator::from_seed(2).words(USUAL_SIZE);
        assert!((USUAL_SIZE..USUAL_SIZE + 20).contains(&words.len()));
    }

    #[test]
    fn seven_of_ten_logs_have_an_error_line() {
        let has_error = |failure: &&Failure| {
            let text = failure.stderr.as_ref().map(|text| text.to_str());
            text.is_some_and(|text| ERRORS.iter().any(|line| text.contains(line)))
        };
        assert_eq!(
            TextGenerator::from_seed(1)
                .logs(100, USUAL_SIZE)
                .iter()
                .filter(has_error)
                .count(),
            70
        );
    }
}
