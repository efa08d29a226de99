// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command celset-webhook rejects ResourceClaims, ResourceClaimTemplates and DeviceClasses with invalid CEL device constraints,
// and warns of pods that no scheduler would serve. With --check-placements it also rejects misconfigured Placements. With
// --guard-allocations, one replica also prevents double allocations of devices. Every replica serves the other webhooks. See the
// packages admission, admission/guard and placement/admission.
package main

import (
	"github.com/celset/celset/cmd/celset-webhook/app"
	"github.com/celset/celset/internal/program"
)

func main() { program.Main(app.NewCommand()) }
