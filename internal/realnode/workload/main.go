// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Workload is the program in the image of a node for tests: it prints what its
// container was told about its devices and does nothing until it is asked to end, as
// a training job that has found its accelerators would. Sandboxes run it, too.
//
//	workload [-for duration]
//
// It prints the variables whose names start with CELSET_, sorted, one a line. With
// -for, it ends by itself.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	lasts := flag.Duration("for", 0, "end after this time (0: when asked to)")
	flag.Parse()
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	printVariables(os.Stdout, os.Environ())
	var over <-chan time.Time
	if *lasts > 0 {
		over = time.After(*lasts)
	}
	select {
	case <-asked:
	case <-over:
	}
}

func printVariables(out io.Writer, environment []string) {
	for _, variable := range slices.Sorted(slices.Values(environment)) {
		if strings.HasPrefix(variable, "CELSET_") {
			fmt.Fprintln(out, variable)
		}
	}
}
