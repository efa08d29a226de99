// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
)

//go:embed go.mod
var module []byte

// setEnvironment has every build get the same settings, whatever those of this machine are, and the
// Go that go.mod of this program names: another one compiles, and compresses, to other bytes.
func setEnvironment() error {
	parsed, err := modfile.Parse("go.mod", module, nil)
	if err != nil {
		return err
	}
	if got := runtime.Version(); parsed.Toolchain == nil || got != parsed.Toolchain.Name {
		return fmt.Errorf("this program was built with %s, but a release takes the toolchain of hack/tools/release/go.mod: build it with \"make bin/release\"", got)
	}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "KO") {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	for name, value := range map[string]string{
		"GOTOOLCHAIN": runtime.Version(), "GOFLAGS": "-buildvcs=false", "GOWORK": "off", "GOEXPERIMENT": "", "GOFIPS140": "off",
		"GOAMD64": "v1", "GOARM64": "v8.0", "CGO_ENABLED": "0",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	for _, name := range []string{"GOOS", "GOARCH"} {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	return nil
}

// versionFlag is what tells programs their version, as a flag of the linker.
func versionFlag(version string) string {
	return "-X github.com/celset/celset/cmd/internal/version.released=" + version
}
