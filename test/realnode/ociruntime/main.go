// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Ociruntime is runc without seccomp filters: it removes the filters from the bundle of a new container, and then executes the
// runc in the same directory.
//
// A runc with filters needs libseccomp, a C library that would have to be installed. A runc without filters refuses bundles
// with a filter, and the kubelet sets a filter for every sandbox. Nodes for tests and demos run only our programs, which need
// no filter. Don't use it for anything else.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "ociruntime: %v\n", err)
		os.Exit(1)
	}
}

// run prepares the bundle and replaces this process by runc. It returns only if it fails.
func run(args []string) error {
	if bundle, creates := bundleToCreate(args); creates {
		if err := removeSeccomp(filepath.Join(bundle, "config.json")); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runc := filepath.Join(filepath.Dir(self), "runc")
	if err := syscall.Exec(runc, append([]string{runc}, args...), os.Environ()); err != nil {
		return fmt.Errorf("execute %s: %w", runc, err)
	}
	return nil
}

// bundleToCreate returns the directory of the bundle in a runc command line. creates is false if the command does not create a
// container.
func bundleToCreate(args []string) (bundle string, creates bool) {
	command := slices.IndexFunc(args, func(arg string) bool { return arg == "create" || arg == "run" })
	if command < 0 {
		return "", false
	}
	rest := args[command+1:]
	for i, arg := range rest {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case name != "--bundle" && name != "-b":
		case joined:
			return value, true
		case i+1 < len(rest):
			return rest[i+1], true
		}
	}
	return ".", true // runc uses the current directory by default
}

// removeSeccomp removes the seccomp filter from the bundle's configuration file. It keeps all other fields.
func removeSeccomp(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	without, err := withoutSeccomp(content)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if without == nil {
		return nil
	}
	return os.WriteFile(path, without, 0o600)
}

// withoutSeccomp returns the configuration without its seccomp filter. If there is no filter, it returns nil.
func withoutSeccomp(content []byte) ([]byte, error) {
	var config, linux map[string]json.RawMessage
	if err := json.Unmarshal(content, &config); err != nil {
		return nil, err
	}
	if len(config["linux"]) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(config["linux"], &linux); err != nil {
		return nil, err
	}
	if _, filtered := linux["seccomp"]; !filtered {
		return nil, nil
	}
	delete(linux, "seccomp")
	var err error
	if config["linux"], err = json.Marshal(linux); err != nil {
		return nil, err
	}
	return json.Marshal(config)
}
