// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package enrichment

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/metrics"
)

const (
	waitFor = 2 * time.Minute
	tick    = 5 * time.Millisecond
)

// bench is an Enrichment on a fake API.
type bench struct {
	*Enrichment
	handle   *plugintest.Handle
	client   *dynamicfake.FakeDynamicClient
	registry compbase.KubeRegistry
	events   *events.FakeRecorder
	// served is false while the API server does not serve the kind. follows is set if another scheduler leads.
	served, follows atomic.Bool
	// woken has the drivers of each call of the waker.
	woken chan []string
}

// newBench returns an Enrichment that does not run.
func newBench(t *testing.T, served bool, objects []*v1alpha1.DeviceAttributes, others ...runtime.Object) (context.Context, *bench) {
	t.Helper()
	ctx, h := plugintest.NewHandle(t, others...)
	b := &bench{handle: h, client: plugintest.NewAttributesClient(t, objects...), registry: compbase.NewKubeRegistry(), events: events.NewFakeRecorder(1000), woken: make(chan []string, 1000)}
	b.served.Store(served)
	b.client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return !b.served.Load(), nil, apierrors.NewNotFound(Resource.GroupResource(), "")
	})
	measured, err := metrics.New(b.registry, time.Now)
	require.NoError(t, err)
	b.Enrichment, err = New(ctx, Config{
		Client: b.client, Slices: h.Manager.ResourceSlices(), Informers: h.Factory, Metrics: measured, Clock: clock.RealClock{},
		Leads: func() error {
			if b.follows.Load() {
				return errors.New("another scheduler leads")
			}
			return nil
		},
		Recorder: func() events.EventRecorderLogger { return b.events },
	})
	require.NoError(t, err)
	b.OnChange(func(drivers sets.Set[string]) { b.woken <- sets.List(drivers) })
	// The lister and the informer of nodes must exist before the informers start.
	h.Factory.Core().V1().Nodes().Lister()
	h.Start(ctx, t)
	return ctx, b
}

func node(name string, labels map[string]string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// shown returns the value of x of each device in the shown ResourceSlices, as text.
func (b *bench) shown(t require.TestingT) map[string]string {
	all, err := b.Manager(b.handle.Manager).ResourceSlices().ListWithDeviceTaintRules()
	require.NoError(t, err)
	result := map[string]string{}
	for _, slice := range all {
		if slice.Spec.Pool.ResourceSliceCount != 1 {
			result["incomplete pool"] = slice.Spec.Pool.Name
		}
		for _, device := range slice.Spec.Devices {
			value := "-"
			if x, ok := device.Attributes[v1alpha1.DefaultAttributesDomain+"/x"]; ok {
				value = fmt.Sprint(*x.IntValue)
			}
			result[device.Name] = value
		}
	}
	return result
}

// eventually requires that the devices get these values.
func (b *bench) eventually(t *testing.T, want map[string]string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { require.Equal(c, want, b.shown(c)) }, waitFor, tick)
}

// status returns the status in the fake API.
func (b *bench) status(t require.TestingT, name string) v1alpha1.DeviceAttributesStatus {
	object, err := b.client.Tracker().Get(Resource, "", name)
	require.NoError(t, err)
	decoded := &v1alpha1.DeviceAttributes{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.(*unstructured.Unstructured).Object, decoded))
	return decoded.Status
}

// writes returns the number of writes of a status.
func (b *bench) writes() int {
	n := 0
	for _, action := range b.client.Actions() {
		if action.GetVerb() == "update" {
			n++
		}
	}
	return n
}
