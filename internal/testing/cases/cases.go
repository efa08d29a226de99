// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cases decides how many cases a test tries, and which.
//
// A change lands after `make test`: few cases, and the same ones in every run, so that it is
// never refused by chance. `make nightly` has many cases, other ones every night, and the tests
// that take minutes or that measure time. It sets [Variable] to the seed of the night:
//
//	go test ./allocator                      # what lands
//	CELSET_NIGHTLY=4711 go test ./allocator  # what the night with this seed had
//
// A test with random input says how many cases each of the two has:
//
//	cases.CheckN(t, cases.Of(200, 10_000), func(t *rapid.T) { ... })
//	random := rand.New(rand.NewPCG(cases.Seed(), 1))
//
// One that only the night has says why:
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

// Variable is the environment variable with the seed of the nightly run, above zero.
const Variable = "CELSET_NIGHTLY"

const landingSeed = 1

// run is the seed of all cases, and whether this is the nightly run. It is read in the test, not
// before: the go command takes the variable for an input of the test only then.
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

// Seed is for a generator of random numbers, the same in each run before a change lands.
func Seed() uint64 {
	seed, _ := run()
	return seed
}

// OnlyNightly skips a test that is no part of landing, because of why.
func OnlyNightly(t testing.TB, why string) {
	t.Helper()
	if !Nightly() {
		t.Skipf("only in make nightly: %s", why)
	}
}

// Of is the first number before a change lands, and the second one in the nightly run.
func Of(landing, night int) int {
	if Nightly() {
		return night
	}
	return landing
}

// Check is [rapid.Check] with 50 cases, and with 1,000 at night.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	CheckN(t, Of(50, 1000), property)
}

// CheckN is [rapid.Check] with n cases. They depend on the seed and on the name of the test. The
// flags -rapid.checks and -rapid.seed come first.
func CheckN(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	check(t, n, 0, property)
}

// Until checks the property in rounds of n cases, each round with other ones, until done. It fails
// the test after a hundred rounds.
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

// flags guards those of rapid, which are for the whole process. They are read before the property
// is called for the first time.
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

// seedOf is a seed for each round of each test.
func seedOf(test string, round uint64) uint64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s %d %d", test, Seed(), round)
	return max(1, hash.Sum64())
}

// given are the flags on the command line.
var given = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
})

// The seed says what a file with a failure would.
func init() {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
}
