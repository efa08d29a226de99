// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
)

// withRegistry is the option that scheduler_perf has for benchmarks only, as their
// parameter: RunIntegrationPerfScheduling takes plugins of others from nowhere else.
func withRegistry(t *testing.T, registry frameworkruntime.Registry) perf.SchedulerPerfOption {
	t.Helper()
	option := reflect.TypeFor[perf.SchedulerPerfOption]()
	field, found := option.In(0).Elem().FieldByName("outOfTreePluginRegistry")
	require.True(t, found, "scheduler_perf has changed")
	require.Equal(t, reflect.TypeOf(registry), field.Type, "scheduler_perf has changed")
	set := func(args []reflect.Value) []reflect.Value {
		options := args[0].Elem()
		address := unsafe.Pointer(options.FieldByIndex(field.Index).UnsafeAddr())
		reflect.NewAt(field.Type, address).Elem().Set(reflect.ValueOf(registry))
		return nil
	}
	return reflect.MakeFunc(option, set).Interface().(perf.SchedulerPerfOption)
}
