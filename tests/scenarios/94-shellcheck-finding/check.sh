#!/usr/bin/env bash
shellcheck --color=never scripts/deploy.sh && echo 'lint ok'
