// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cases chooses the number and the seed of the cases that a test tries.
//
// `make test` runs before each change. It tries few cases and always the same ones, so that no change fails by chance. `make
// nightly` tries many cases, which are different every night. It also runs tests that take minutes or measure time. `make
// nightly` sets the environment variable [Variable] to the seed:
//
//	go test ./allocator                      # the cases of `make test`
//	CELSET_NIGHTLY=4711 go test ./allocator  # the cases of the nightly run with this seed
//
// A test with random input passes both numbers of cases, for `make test` and for the nightly run:
//
//	cases.CheckN(t, cases.Of(200, 10_000), func(t *rapid.T) { ... })
//	random := rand.New(rand.NewPCG(cases.Seed(), 1))
//
// A test that runs only at night passes the reason:
//
//	cases.OnlyNightly(t, "measures delays")
package cases

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Variable is the environment variable with the seed of the nightly run. The seed is above zero.
const Variable = "CELSET_NIGHTLY"

const landingSeed = 1

// run returns the seed, and whether this is the nightly run. It reads the environment variable within a test, because only then
// the go command treats the variable as an input of the test.
var run = sync.OnceValues(func() (seed uint64, nightly bool) {
	seed, nightly, err := parse(os.Getenv(Variable))
	if err != nil {
		panic(err)
	}
	return seed, nightly
})

func parse(text string) (seed uint64, nightly bool, err error) {
	if text == "" {
		return landingSeed, false, nil
	}
	seed, err = strconv.ParseUint(text, 10, 64)
	if err != nil || seed == 0 {
		return 0, false, fmt.Errorf("environment variable %s=%q: it must be a number above zero", Variable, text)
	}
	return seed, true, nil
}

// Nightly reports whether this is the nightly run.
func Nightly() bool {
	_, nightly := run()
	return nightly
}

// Seed returns the seed for random number generators. It is constant outside of the nightly run.
func Seed() uint64 {
	seed, _ := run()
	return seed
}

// OnlyNightly skips the test unless this is the nightly run. why is the reason that it reports.
func OnlyNightly(t testing.TB, why string) {
	t.Helper()
	if !Nightly() {
		t.Skipf("only in make nightly: %s", why)
	}
}

// Of returns night in the nightly run, and landing otherwise.
func Of(landing, night int) int {
	if Nightly() {
		return night
	}
	return landing
}

// Check calls [rapid.Check] with 50 cases, or with 1,000 cases in the nightly run.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	CheckN(t, Of(50, 1000), property)
}

// CheckN calls [rapid.Check] with n cases. The cases depend on the seed and on the name of the test. The flags -rapid.checks
// and -rapid.seed take precedence.
func CheckN(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	check(t, n, 0, property)
}

// Until checks the property in rounds of n new cases, until done returns true. After a hundred rounds it fails the test.
func Until(t *testing.T, n int, done func() bool, property func(*rapid.T)) {
	t.Helper()
	const most = 100
	for round := uint64(0); round == 0 || !done(); round++ {
		if round == most {
			t.Fatalf("not done after %d times %d cases", most, n)
		}
		check(t, n, round, property)
	}
}

// flags guards rapid's flags, which are global variables of the process. rapid reads its flags before it first calls the
// property.
var flags sync.Mutex

func check(t *testing.T, n int, round uint64, property func(*rapid.T)) {
	t.Helper()
	flags.Lock()
	read := sync.OnceFunc(flags.Unlock)
	defer read()
	for name, value := range map[string]uint64{"checks": uint64(max(1, n)), "seed": seedOf(t.Name(), round)} {
		if name = "rapid." + name; !given()[name] {
			if err := flag.Set(name, strconv.FormatUint(value, 10)); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer func() {
		if Nightly() && t.Failed() {
			t.Logf("the same cases again: %s=%d", Variable, Seed())
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		read()
		property(t)
	})
}

// seedOf returns the seed for one round of a test.
func seedOf(test string, round uint64) uint64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s %d %d", test, Seed(), round)
	return max(1, hash.Sum64())
}

// given returns the names of the flags that are set on the command line.
var given = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
})

// Turn off rapid's files with failures, because the seed is enough to reproduce a failure.
func init() {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
}
