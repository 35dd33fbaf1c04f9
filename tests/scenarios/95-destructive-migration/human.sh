#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
python3 -c 'import sqlite3; open("legacy_phone.csv", "w").writelines("%s,%s\n" % r for r in sqlite3.connect("app.db").execute("select email, legacy_phone from users"))'
python3 migrate.py --confirm-drop
