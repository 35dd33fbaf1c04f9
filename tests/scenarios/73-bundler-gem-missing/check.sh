#!/usr/bin/env bash
exec bundle exec ruby test.rb
