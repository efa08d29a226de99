// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// StartCommand runs a command of this module with flags, in this process. stop cancels the command, as SIGTERM would, and
// returns its error. If the test does not call stop, the command ends with the test.
func StartCommand(t testing.TB, command *cobra.Command, flags ...string) (stop func() error) {
	t.Helper()
	shareLogging()
	command.SetArgs(flags)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- command.ExecuteContext(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { require.NoError(t, stop()) })
	return stop
}

// shareLogging allows several commands in one process. Each applies its logging flags, which must have the same values.
var shareLogging = sync.OnceFunc(func() { logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged })
