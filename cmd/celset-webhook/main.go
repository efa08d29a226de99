// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command celset-webhook refuses ResourceClaims, ResourceClaimTemplates and DeviceClasses
// with mistakes in their CEL device constraints, and warns of pods that no scheduler would
// serve. With --check-placements it refuses misconfigured Placements, too. Every replica
// answers. With --guard-allocations one of them refuses to let a device be allocated twice. See packages
// admission, admission/guard and placement/admission.
package main

import (
	"github.com/celset/celset/cmd/celset-webhook/app"
	"github.com/celset/celset/internal/program"
)

func main() { program.Main(app.NewCommand()) }
