// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-celset is a kubectl plugin for CEL device constraints: kubectl celset
// check, convert, simulate, explain, draw, fragmentation. It reads and never writes, from a cluster or from files. By the
// name kubectl_complete-celset it completes its arguments.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	args := os.Args[1:]
	if strings.HasPrefix(filepath.Base(os.Args[0]), cli.CompleteName) {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	code := cli.Run(ctx, args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
