// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"sync"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

// recorder is an Observer that stores the arguments of its calls.
type recorder struct {
	mutex        sync.Mutex
	compilations []compilation
	evaluations  []evaluation
}

type compilation struct {
	environment string
	hit         bool
	failed      bool
}

type evaluation struct {
	environment string
	cost        uint64
	err         error
}

func (r *recorder) ObserveCompilation(environment string, hit bool, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.compilations = append(r.compilations, compilation{environment, hit, err != nil})
}

func (r *recorder) ObserveEvaluation(environment string, cost uint64, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.evaluations = append(r.evaluations, evaluation{environment, cost, err})
}

// newEnvironment returns an environment with the variables "n" (int), "numbers" (list of int) and "anything" (dyn).
func newEnvironment(t testing.TB, config cel.Config) *cel.Environment {
	t.Helper()
	config.Name = "numbers"
	config.Options = []celgo.EnvOption{
		celgo.Variable("n", celgo.IntType),
		celgo.Variable("numbers", celgo.ListType(celgo.IntType)),
		celgo.Variable("anything", celgo.DynType),
	}
	environment, err := cel.NewEnvironment(config)
	require.NoError(t, err)
	return environment
}

func compile(t testing.TB, environment *cel.Environment, expression string) *cel.Program {
	t.Helper()
	program, err := environment.Compile(t.Context(), expression)
	require.NoError(t, err)
	return program
}

// input returns an activation with 20 numbers and n.
func input(t testing.TB, n int64) celgo.Activation {
	t.Helper()
	numbers := make([]int64, 20)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	activation, err := celgo.NewActivation(map[string]any{"n": n, "numbers": numbers, "anything": "text"})
	require.NoError(t, err)
	return activation
}

// requireError requires that err is a [*cel.Error] with the reason, and returns it.
func requireError(t testing.TB, err error, reason cel.Reason) *cel.Error {
	t.Helper()
	var result *cel.Error
	require.ErrorAs(t, err, &result)
	require.Equal(t, reason, result.Reason, "%v", err)
	return result
}
