// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Main calls prepare, runs the tests of a package, and then runs all cleanups that prepare and shared values have registered.
// It exits with the result.
func Main(m *testing.M, prepare ...func(testing.TB)) { os.Exit(run(&ofPackage, m.Run, prepare)) }

// NoLeaks makes the package fail if a goroutine still runs after the tests and cleanups.
func NoLeaks(t testing.TB) {
	// The goroutine that waits for this check is not a leak.
	waits := goleak.IgnoreAnyFunction("github.com/celset/celset/test/internal/env.(*packageTest).call")
	t.Cleanup(func() { require.NoError(t, goleak.Find(waits)) })
}

func run(t *packageTest, tests func() int, prepare []func(testing.TB)) (code int) {
	t.ctx, t.cancel = context.WithCancel(context.Background())
	for _, f := range prepare {
		if !t.Failed() {
			t.call(func() { f(t) })
		}
	}
	if !t.Failed() {
		if code = tests(); code != 0 {
			t.Fail()
		}
	}
	t.cancel()
	for f := t.next(); f != nil; f = t.next() {
		t.call(f)
	}
	if t.Failed() {
		return max(code, 1)
	}
	return code
}

// Share returns a function that returns a value for all tests of a package. The first call creates the value with start. The
// cleanups that start registers run at the end of the package.
func Share[T any](start func(testing.TB) T) func(testing.TB) T { return share(&ofPackage, start) }

func share[T any](of *packageTest, start func(testing.TB) T) func(testing.TB) T {
	var value T
	var once sync.Once
	made := false
	return func(t testing.TB) T {
		t.Helper()
		if of.ctx == nil {
			t.Fatal("the package shares something, and has no TestMain that calls env.Main")
		}
		once.Do(func() {
			of.call(func() { value, made = start(of), true })
		})
		if !made {
			t.Fatal("what all tests share has not started")
		}
		return value
	}
}

// packageTest is a [testing.TB] that lasts for all tests of a package.
type packageTest struct {
	testing.TB // nil, so only the methods below may be called
	ctx        context.Context
	cancel     context.CancelFunc

	mutex    sync.Mutex
	failed   bool
	cleanups []func()
}

var ofPackage packageTest

// call calls f in a new goroutine and waits for its end. f may end by returning or by FailNow.
func (t *packageTest) call(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	<-ended
}

// next removes the cleanup that was registered last, and returns it.
func (t *packageTest) next() func() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	last := len(t.cleanups) - 1
	if last < 0 {
		return nil
	}
	f := t.cleanups[last]
	t.cleanups = slices.Delete(t.cleanups, last, last+1)
	return f
}

func (t *packageTest) Cleanup(f func()) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.cleanups = append(t.cleanups, f)
}

func (t *packageTest) Fail() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.failed = true
}

func (t *packageTest) Failed() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.failed
}

func (t *packageTest) FailNow() {
	t.Fail()
	runtime.Goexit()
}

func (t *packageTest) Name() string             { return "TestMain" }
func (t *packageTest) Context() context.Context { return t.ctx }
func (t *packageTest) Output() io.Writer        { return os.Stderr }
func (t *packageTest) Helper()                  {}

func (t *packageTest) Logf(format string, args ...any) {
	fmt.Fprintf(t.Output(), format+"\n", args...)
}

func (t *packageTest) Errorf(format string, args ...any) {
	t.Logf(format, args...)
	t.Fail()
}

func (t *packageTest) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	t.FailNow()
}

func (t *packageTest) TempDir() string {
	dir, err := os.MkdirTemp("", "celset-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
