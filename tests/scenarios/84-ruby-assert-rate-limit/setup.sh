#!/usr/bin/env bash
set -eu
command -v ruby >/dev/null || { echo 'ruby is not installed'; exit 77; }
mkdir lib test
cat > lib/backoff.rb <<'X'
module Backoff
  # seconds to wait before the next try
  def self.after(status, retry_after)
    status == 429 ? retry_after / 10 : 0
  end
end
X
cat > test/test_backoff.rb <<'X'
require "minitest/autorun"
require_relative "../lib/backoff"

class TestBackoff < Minitest::Test
  def test_rate_limit
    assert_equal 30, Backoff.after(429, 30), "HTTP 429 Too Many Requests: rate limit exceeded, try again later"
  end
end
X
