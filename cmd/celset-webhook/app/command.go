// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app implements the command celset-webhook: its flags, and the manager that serves its webhooks.
package app

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/celset/celset/internal/program"
)

// NewCommand returns the command.
func NewCommand() *cobra.Command { return newCommand(newOptions()) }

func newCommand(o *options) *cobra.Command {
	return program.NewCommand("celset-webhook", "Check CEL device constraints and Placements before they are stored", o,
		func(ctx context.Context) error { return o.Run(ctx, o.manager) })
}
