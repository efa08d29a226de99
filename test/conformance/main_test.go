// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"

	"github.com/celset/celset/internal/testing/cases"
)

// storeFolder is where a case that fails is stored, empty for nowhere.
var storeFolder = flag.String("conformance.store", "", "folder to store the reduced case of a failure in, such as testdata")

func TestMain(m *testing.M) {
	// Many small allocations, little that lives long: collecting garbage less often
	// saves time and costs little memory.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// some is how many cases each test has, and each variant of upstream's allocator two and a half times of it.
func some() int { return cases.Of(3000, 20_000) }
