#!/usr/bin/env bash
exec php test.php
