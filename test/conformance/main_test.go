// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// casesVariable is the environment variable with the number of cases that are
// compared with upstream. Other tests use a part of it.
const casesVariable = "CELSET_CONFORMANCE_CASES"

// budget is the value of the variable.
var budget = 100_000

// storeFolder is where a case that fails is stored, empty for nowhere.
var storeFolder = flag.String("conformance.store", "", "folder to store the reduced case of a failure in, such as testdata")

func TestMain(m *testing.M) {
	flag.Parse()
	if value := os.Getenv(casesVariable); value != "" {
		var err error
		if budget, err = strconv.Atoi(value); err != nil || budget < 1 {
			fmt.Fprintf(os.Stderr, "environment variable %s=%s: it must be a number above zero\n", casesVariable, value)
			os.Exit(2)
		}
	}
	for name, value := range map[string]string{
		"rapid.seed": "1",
		// Storing the case itself is of more use than storing what it is made from.
		"rapid.nofailfile": "true",
	} {
		if err := setDefault(name, value); err != nil {
			fmt.Fprintf(os.Stderr, "flag %s=%s: %v\n", name, value, err)
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

// checksMutex guards the number of checks, which rapid knows for the whole
// process only. It is read before the property is called for the first time.
var checksMutex sync.Mutex

// check checks a property in a number of cases.
func check(t *testing.T, cases int, property func(*rapid.T)) {
	t.Helper()
	checksMutex.Lock()
	started := sync.OnceFunc(checksMutex.Unlock)
	defer started()
	if err := flag.Set("rapid.checks", strconv.Itoa(max(1, cases))); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		started()
		property(t)
	})
}
