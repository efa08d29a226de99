// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-celset is a kubectl plugin for CEL device constraints: kubectl celset
// check, convert, simulate, draw, fragmentation. It reads and never writes, from a cluster or from files.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
