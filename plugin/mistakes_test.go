// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/celset/celset/cel"
)

// withLog returns a context whose log has what is written without any -v, and that log.
func withLog(ctx context.Context) (context.Context, func() ktesting.Log) {
	logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
	buffer := logger.GetSink().(ktesting.Underlier).GetBuffer()
	return klog.NewContext(ctx, logger), buffer.Data
}

func podIn(namespace string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"}}
}

func wrong(expression string) error {
	return fmt.Errorf("claim ns/claim, constraint c: %w", &cel.Error{Expression: expression, Message: "no such thing"})
}

// TestExpressionThatDoesNotCompileIsLogged: once, however often the pod is tried, and without
// any verbosity.
func TestExpressionThatDoesNotCompileIsLogged(t *testing.T) {
	ctx, pl := start(t, true, class(), slice(0, 1), constrain(t, claim(2), "c", "devices +"))
	ctx, log := withLog(ctx)
	for range 3 {
		_, status := pl.PreFilter(ctx, framework.NewCycleState(), pod(), nil)
		require.False(t, status.IsSuccess())
	}
	require.Len(t, log(), 1)
	entry := log()[0]
	require.Equal(t, ktesting.LogInfo, entry.Type)
	require.Zero(t, entry.Verbosity)
	require.Equal(t, "The expression of a CEL device constraint does not compile", entry.Message)
	require.Contains(t, fmt.Sprint(entry.ParameterKVList...), "constraint c")
	require.Contains(t, fmt.Sprint(entry.ParameterKVList...), "Syntax error")
}

func TestWhatCompilesIsNotLogged(t *testing.T) {
	for name, expression := range map[string]string{"fits": ring2, "fits nowhere": "size(devices) > 2"} {
		t.Run(name, func(t *testing.T) {
			ctx, pl := start(t, true, class(), slice(0, 1), constrain(t, claim(2), "c", expression))
			ctx, log := withLog(ctx)
			_, status := pl.PreFilter(ctx, framework.NewCycleState(), pod(), nil)
			require.True(t, status.IsSuccess(), status)
			require.Empty(t, log())
		})
	}
}

// TestNamespaceDoesNotFloodTheLog: of mistakes that all differ the first ones are logged, and then
// one a minute, whatever other namespaces do.
func TestNamespaceDoesNotFloodTheLog(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	m := newMistakes(now)
	ctx, log := withLog(t.Context())
	for i := range 100 {
		m.log(ctx, podIn("mallory"), wrong(fmt.Sprint("devices + ", i)))
	}
	require.Len(t, log(), mistakesAtOnce)

	m.log(ctx, podIn("alice"), wrong("devices -"))
	require.Len(t, log(), mistakesAtOnce+1, "another namespace has a share of its own")
	m.log(ctx, podIn("alice"), wrong("devices + 0"))
	require.Len(t, log(), mistakesAtOnce+1, "the same mistake was logged")

	now.SetTime(now.Now().Add(time.Minute))
	for i := range 100 {
		m.log(ctx, podIn("mallory"), wrong(fmt.Sprint("devices + ", i)))
	}
	require.Len(t, log(), mistakesAtOnce+2)
	last := log()[mistakesAtOnce+1].ParameterKVList
	require.Equal(t, []any{"leftOut", 90}, last[len(last)-2:])
}

func TestMistakesThatAreLoggedAreShort(t *testing.T) {
	m := newMistakes(clocktesting.NewFakePassiveClock(time.Now()))
	ctx, log := withLog(t.Context())
	m.log(ctx, podIn("ns"), fmt.Errorf("%s: %w", strings.Repeat("ä", maxLoggedMistake), &cel.Error{Message: "wrong"}))
	require.Len(t, log(), 1)
	require.Less(t, len(fmt.Sprint(log()[0].ParameterKVList...)), maxLoggedMistake+100)
	m.log(ctx, podIn("ns"), errors.New("a reference without definition"))
	require.Len(t, log(), 1, "nothing was compiled")
}
