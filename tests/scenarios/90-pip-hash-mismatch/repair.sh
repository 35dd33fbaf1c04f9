#!/usr/bin/env bash
echo "no automatic repair: the package's content is not what was pinned: may be tampering" >&2
exit 1
