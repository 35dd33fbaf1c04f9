#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
mv test_shop.db customer-import.db
