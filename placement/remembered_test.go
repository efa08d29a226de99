// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
)

// What is remembered of many Placements, each with another expression, is said to take about
// what it takes; without it decisions are the same.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	const placements = 60
	h := newHub()
	for i := range 200 {
		h.clusters = append(h.clusters, managed(fmt.Sprintf("c%03d", i)))
	}
	var objects []*clusterv1beta1.Placement
	for i := range placements {
		object := placed(t, withExpressions(fmt.Sprintf(`managedCluster.metadata.name < "c150" && managedCluster.metadata.name != "%d"`, i)))
		object.UID = types.UID(fmt.Sprint("uid-", i))
		objects = append(objects, object)
	}
	scheduler, at := newScheduler(t), time.Now()
	decideAll := func(evaluated int) {
		t.Helper()
		for _, object := range objects {
			result, err := scheduler.Schedule(t.Context(), object, h.snapshot(), at)
			require.NoError(t, err)
			require.Len(t, selected(t, result), 150)
			require.Equal(t, evaluated, result.Evaluated, "%v", result.Conditions)
		}
	}
	forgetAll := func() {
		for _, object := range objects {
			scheduler.Forget(object.UID)
		}
	}
	decideAll(200) // what is compiled is there
	forgetAll()
	used := func() int64 { return placement.Used() }
	others, before := used(), heap()
	decideAll(200)
	taken, said := heap()-before, used()-others
	compiled := int64(placements * 20 << 10)
	t.Logf("%d bytes are said, of which %d are compiled expressions; %d are taken", said, compiled, taken)
	require.Less(t, taken, 2*(said-compiled))
	require.Greater(t, 2*taken, said-2*compiled)
	decideAll(0)

	placement.ForgetAll()
	require.Zero(t, used())
	decideAll(200)
	decideAll(0)
	forgetAll()
	require.Zero(t, used(), "nothing is left of Placements that are gone")
	runtime.KeepAlive(h.clusters)
}

// What is remembered of a cluster for a Placement is two words: hubs have hundreds of Placements and tens of
// thousands of clusters, and what does not fit is found out again at each change.
func TestWhatIsRememberedIsSmall(t *testing.T) {
	const clusters = 5000
	h := newHub()
	for i := range clusters {
		h.clusters = append(h.clusters, managed(fmt.Sprintf("c%04d", i)))
	}
	scheduler := newScheduler(t)
	object := placed(t, withExpressions(`managedCluster.metadata.name.endsWith("7")`))
	before := placement.Remembered.Used()
	result, err := scheduler.Schedule(t.Context(), object, h.snapshot(), time.Now())
	require.NoError(t, err)
	require.Len(t, selected(t, result), clusters/10)
	defer scheduler.Forget(object.UID)
	const compiled = 20 << 10
	require.Less(t, placement.Remembered.Used()-before, int64(clusters*16+compiled))
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}
