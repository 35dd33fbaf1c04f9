#!/usr/bin/env bash
set -eu
command -v perl >/dev/null || { echo 'perl is not installed'; exit 77; }
command -v prove >/dev/null || { echo 'prove is not installed'; exit 77; }
command -v make >/dev/null || { echo 'make is not installed'; exit 77; }
mkdir -p lib/Text t
cat > lib/Text/Slugger.pm <<'X'
package Text::Slugger;
use strict; use warnings;
our $VERSION = '1.02';
sub slug { my $s = lc shift; $s =~ s/\W+/-/g; return $s }
1;
X
printf 'use ExtUtils::MakeMaker;\nWriteMakefile(NAME => "Text::Slugger", VERSION_FROM => "lib/Text/Slugger.pm");\n' > Makefile.PL
printf 'use strict; use warnings; use Test::More tests => 1;\nuse Text::Slugger;\nis(Text::Slugger::slug("Hello World"), "hello-world");\n' > t/slug.t
printf 'Makefile.PL\nlib/Text/Slugger.pm\nt/slug.t\nMANIFEST\n' > MANIFEST
