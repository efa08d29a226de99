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

// Main runs the tests of a package, and what prepares for all of them. It ends what these
// prepared and what tests share.
func Main(m *testing.M, prepare ...func(testing.TB)) { os.Exit(run(&ofPackage, m.Run, prepare)) }

// NoLeaks has the package fail if a goroutine is left when everything has ended.
func NoLeaks(t testing.TB) {
	// What waits until it has been looked for leaks is none.
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

// Share has the tests of a package share a value. The first one that asks for it has it made;
// what that starts ends with the package.
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

// packageTest is to all tests of a package what [testing.T] is to one.
type packageTest struct {
	testing.TB // nil: what is not below is not to be called
	ctx        context.Context
	cancel     context.CancelFunc

	mutex    sync.Mutex
	failed   bool
	cleanups []func()
}

var ofPackage packageTest

// call returns when f has ended, by itself or with FailNow.
func (t *packageTest) call(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	<-ended
}

// next takes the cleanup that was registered last.
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
