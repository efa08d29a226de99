// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-celset is a kubectl plugin for CEL device constraints, with the commands check, convert, simulate, explain,
// draw and fragmentation. It reads a cluster or files and never writes. Under the name kubectl_complete-celset it completes
// arguments.
package main

import (
	"os"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
)

func main() { os.Exit(cli.Main()) }
