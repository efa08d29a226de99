// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app implements the command celset-placement: its flags, and the manager that runs its controllers.
package app

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/celset/celset/internal/program"
)

// NewCommand returns the command.
func NewCommand() *cobra.Command { return newCommand(newOptions()) }

func newCommand(o *options) *cobra.Command {
	return program.NewCommand("celset-placement", "Select clusters for Placements and write their PlacementDecisions", o,
		func(ctx context.Context) error { return o.Run(ctx, o.manager) })
}
