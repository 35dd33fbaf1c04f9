#!/usr/bin/env bash
exec php tests/run.php
