#!/usr/bin/env bash
exec ruby test/test_backoff.rb
