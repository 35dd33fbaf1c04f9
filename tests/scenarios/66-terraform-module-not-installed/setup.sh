#!/usr/bin/env bash
set -eu
command -v terraform >/dev/null || { echo 'terraform is not installed'; exit 77; }
mkdir -p modules/naming
cat > modules/naming/main.tf <<'X'
variable "env" { type = string }
output "prefix" { value = "acme-${var.env}" }
X
cat > main.tf <<'X'
module "naming" {
  source = "./modules/naming"
  env    = "test"
}
output "prefix" { value = module.naming.prefix }
X
