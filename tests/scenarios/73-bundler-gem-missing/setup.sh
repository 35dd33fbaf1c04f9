#!/usr/bin/env bash
set -eu
command -v ruby >/dev/null || { echo 'ruby is not installed'; exit 77; }
command -v bundle >/dev/null || { echo 'bundle is not installed'; exit 77; }
command -v gem >/dev/null || { echo 'gem is not installed'; exit 77; }
mkdir -p g/lib vendor/cache .bundle
printf -- '---\nBUNDLE_PATH: "vendor/bundle"\nBUNDLE_DISABLE_SHARED_GEMS: "true"\n' > .bundle/config
cat > g/tally_marks.gemspec <<'X'
Gem::Specification.new { |s| s.name = "tally_marks"; s.version = "1.0.0"; s.summary = "marks"; s.authors = ["a"]; s.files = ["lib/tally_marks.rb"]; s.license = "MIT"; s.homepage = "https://example.com" }
X
echo 'module TallyMarks; def self.of(n) = "|" * n; end' > g/lib/tally_marks.rb
( cd g && gem build --silent tally_marks.gemspec >/dev/null 2>&1 ); mv g/tally_marks-1.0.0.gem vendor/cache/; rm -rf g
printf 'source "https://rubygems.org"\ngem "tally_marks", "1.0.0"\n' > Gemfile
printf 'require "tally_marks"\nraise unless TallyMarks.of(3) == "|||"\nputs "1 passed, 0 failed"\n' > test.rb
export BUNDLE_SILENCE_ROOT_WARNING=1
bundle install --local --quiet >/dev/null 2>&1
rm -rf vendor/bundle
