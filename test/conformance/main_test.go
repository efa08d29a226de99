// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
)

// casesVariable is the environment variable with the number of cases a test.
const casesVariable = "CELSET_CONFORMANCE_CASES"

// storeFolder is where a case that fails is stored, empty for nowhere.
var storeFolder = flag.String("conformance.store", "", "folder to store the reduced case of a failure in, such as testdata")

func TestMain(m *testing.M) {
	flag.Parse()
	cases := "20000"
	if value := os.Getenv(casesVariable); value != "" {
		cases = value
	}
	for name, value := range map[string]string{
		"rapid.checks": cases,
		"rapid.seed":   "1",
		// Storing the case itself is of more use than storing what it is made from.
		"rapid.nofailfile": "true",
	} {
		if err := setDefault(name, value); err != nil {
			fmt.Fprintf(os.Stderr, "flag %s=%s: %v (the environment variable %s must be a number)\n", name, value, err, casesVariable)
			os.Exit(2)
		}
	}
	// Many small allocations, little that lives long: collecting garbage less often
	// saves time and costs little memory.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// setDefault sets a flag unless it is on the command line.
func setDefault(name, value string) error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return nil
	}
	return flag.Set(name, value)
}
