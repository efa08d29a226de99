// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Workload is the program in the image of a node for tests. It prints the devices that its container sees, and then waits for
// SIGTERM. It is also the program of pod sandboxes.
//
//	workload [-for duration]
//
// It prints the variables whose names start with CELSET_, sorted, one per line, and finally a line with the names of the
// devices. With -for, it ends by itself.
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
	var devices []string
	for _, variable := range slices.Sorted(slices.Values(environment)) {
		if !strings.HasPrefix(variable, "CELSET_") {
			continue
		}
		fmt.Fprintln(out, variable)
		if name, isDevice := deviceIn(variable); isDevice {
			devices = append(devices, name)
		}
	}
	fmt.Fprintf(out, "This container has %d devices: %s\n", len(devices), strings.Join(devices, ", "))
}

// deviceIn returns the name of the device in a variable of celset-topology-driver. The value is key-value pairs, one of them
// "device=mla-2".
func deviceIn(variable string) (string, bool) {
	name, value, _ := strings.Cut(variable, "=")
	if !strings.HasPrefix(name, "CELSET_DEVICE_") {
		return "", false
	}
	for _, pair := range strings.Fields(value) {
		if device, found := strings.CutPrefix(pair, "device="); found {
			return device, true
		}
	}
	return "", false
}
