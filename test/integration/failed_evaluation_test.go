// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/internal/topology"
)

// failingProfile is the one profile of a scheduler of its own, whose metrics nobody else adds to.
const failingProfile = "celset-failing"

// TestFailedEvaluationMayBeAboutTheNode has two nodes, and only the devices of the second one say on
// which board they are. An expression that reads it fails on the first. With onError:
// NodeDoesNotFit the pod runs on the other; where that has no room the message names the node that
// failed. Without it the pod runs nowhere, because the attempt ends with the error.
func TestFailedEvaluationMayBeAboutTheNode(t *testing.T) {
	t.Parallel()
	l := newLab(t, "failing", 2)
	old, current := l.Nodes[0], l.Nodes[1]
	driver := l.mixedFleet(t, old, current)
	scheduler := startScheduler(t, failingProfile, celsetConfig(t, failingProfile, "{}"))
	pair := env.Request("mla", driver, 2)
	board := fmt.Sprintf("devices.all(d, d.attributes[%q].board == 1)", driver)
	unfit := func() float64 {
		_, values := scrape(t, scheduler)
		return values["celset_nodes_unfit_by_failure_total Runtime"]
	}

	l.Run(t, "aborts", failingProfile, pair, failing("board", "", board), env.Refer("board"))
	l.RequireRefused(t, "aborts", "no such key: board")
	require.Zero(t, unfit(), "an attempt that ends is not about a node")
	l.DeletePod(t, "aborts")

	nodeDoesNotFit := failing("board", v1alpha1.OnErrorNodeDoesNotFit, board)
	l.Run(t, "elsewhere", failingProfile, pair, nodeDoesNotFit, env.Refer("board"))
	l.RequireRunning(t, "elsewhere")
	require.Equal(t, current, l.Pod(t, "elsewhere").Spec.NodeName)
	require.GreaterOrEqual(t, unfit(), 1.0)

	l.Run(t, "nowhere", failingProfile, pair, nodeDoesNotFit, env.Refer("board"))
	l.RequireRefused(t, "nowhere", "an expression fails on devices of 1 nodes, such as claim "+l.Namespace+"/nowhere, constraint board, node "+old,
		"no such key: board")
}

// mixedFleet publishes three devices on each node, those of the current one with a board, and a class
// for them.
func (l *lab) mixedFleet(t *testing.T, old, current string) (driver string) {
	t.Helper()
	ring, err := topology.NewRing(l.Family("mla"), 3)
	require.NoError(t, err)
	l.Publish(t, ring, old)
	published, err := ring.ResourceSlices(current)
	require.NoError(t, err)
	for _, slice := range published {
		for i := range slice.Spec.Devices {
			slice.Spec.Devices[i].Attributes["board"] = resourceapi.DeviceAttribute{IntValue: new(int64(1))}
		}
		cluster.CreateSlice(t, slice)
	}
	driver = ring.Drivers()[0]
	l.CreateClass(t, driver)
	return driver
}

// failing defines a constraint with what a failure of it means.
func failing(name string, onError v1alpha1.OnError, expression string) env.Part {
	raw, err := json.Marshal(&v1alpha1.CELDeviceConstraint{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
		Name:     name, Expression: expression, OnError: onError,
	})
	if err != nil {
		panic(err) // texts always can be marshalled
	}
	return env.Configure(resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
	}})
}
