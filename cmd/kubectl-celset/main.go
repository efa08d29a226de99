// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-celset is a kubectl plugin for CEL device constraints: kubectl celset
// check, convert, simulate, explain, draw, fragmentation. It reads and never writes, from a cluster or from files. By the
// name kubectl_complete-celset it completes its arguments.
package main

import (
	"os"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
)

func main() { os.Exit(cli.Main()) }
