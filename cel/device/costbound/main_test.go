// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package costbound_test

import (
	"flag"
	"os"
	"testing"
)

// defaultChecks is the number of random cases of each property, unless the flag
// -rapid.checks gives another.
const defaultChecks = "4000"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", defaultChecks); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
